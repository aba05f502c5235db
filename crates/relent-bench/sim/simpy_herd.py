"""The herd in SimPy: a process a client, one timeout an attempt. Prints attempts, drain in ns, ns taken, peak bytes."""

import random
import resource
import sys
import time

import simpy

ONE_WAY, BASE, CAP = 0.005, 0.1, 10.0


class Server:
    def __init__(self, clients):
        self.service = 20.0 / clients
        self.room = (clients // 20 - 1) * self.service
        self.free_at = 0.0
        self.attempts = 0

    def admits(self, now):
        self.attempts += 1
        if self.free_at - now > self.room + 1e-12:
            return False
        self.free_at = max(self.free_at, now) + self.service
        return True


def client(env, server, uniform):
    yield env.timeout(ONE_WAY)
    width = BASE
    while not server.admits(env.now):
        yield env.timeout(2 * ONE_WAY + uniform() * width)
        width = min(CAP, width * 2)


def main():
    clients, seed = int(sys.argv[1]), int(sys.argv[2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter_ns()
    env, server, uniform = simpy.Environment(), Server(clients), random.Random(seed).random
    for _ in range(clients):
        env.process(client(env, server, uniform))
    env.run()
    took = time.perf_counter_ns() - begun
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(server.attempts, int((server.free_at + ONE_WAY) * 1e9), took, peak)


main()
