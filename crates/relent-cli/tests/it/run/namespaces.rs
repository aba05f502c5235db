//! Who and whose a file is in a namespace of users, where all whom it does not know have one number.

use super::hostile::{OTHER, shared};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    process::{Command, Stdio},
    thread,
};

/// Those whom it does not know have one number, and so may we.
#[test]
fn a_policy_file_of_another_user_is_not_ours_in_a_namespace() {
    const THIRD: &str = "65532";
    let place = shared();
    let theirs = place.0.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("relent.toml"), "[policy]\nmax_attempts = 2\n").unwrap();
    Command::new("chown").args(["-R", THIRD]).arg(&theirs).status().unwrap();
    let apart = |flag: &str, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", OTHER, "--regid", OTHER, "--clear-groups", "unshare", flag]).args(args);
        command.current_dir(&theirs).env("TMPDIR", place.0.path().join("tmp")).env_remove("RELENT_KEY");
        command.stdin(Stdio::null()).output().unwrap()
    };
    if !apart("-U", &["true"]).status.success() {
        eprintln!("SKIPPED a_policy_file_of_another_user_is_not_ours_in_a_namespace: there are no namespaces of users");
        return;
    }
    for flag in ["-U", "-Ur"] {
        let output = apart(flag, &["../relent", "run", "--base", "1ms", "--", "false"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("relent.toml, found in this folder, is ignored: it belongs to somebody else"),
            "{flag}: {said}"
        );
        assert!(said.contains("attempt 1 of 8"), "{flag}: {said}");
    }
}

/// So have all groups whom it does not know: one that could read a file, and the one that all files of its folder have.
#[test]
fn what_replaces_a_file_is_for_no_group_of_another_user_in_a_namespace() {
    let place = shared();
    chown(place.0.path(), Some(65_533), None).unwrap();
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = place.0.path().join("f");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(65_533), Some(65_531)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o2755)).unwrap();
    let file = folder.join("file");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nnew");
        }
    });
    for (apart, of_file) in [(&["unshare", "-Ur"][..], 0o600), (&[], 0o640)] {
        fs::write(&file, "old").unwrap();
        chown(&file, Some(65_533), Some(65_532)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", OTHER, "--regid", OTHER, "--groups", "65532"]).args(apart);
        command.args(["./relent", "http", "-q", "-o", "f/file", &url]).current_dir(place.0.path());
        let output = command.env("HOME", "/dev/null").stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("unshare") {
            eprintln!("SKIPPED what_replaces_a_file_is_for_no_group_of_another_user_in_a_namespace: {said}");
            continue;
        }
        let data = fs::metadata(&file).unwrap();
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), data.mode() & 0o777),
            ("new", of_file),
            "{apart:?} {said}"
        );
        assert_eq!(data.gid(), if apart.is_empty() { 65_532 } else { 65_531 });
        fs::remove_file(&file).unwrap();
    }
}

/// Its policy file is there, and where it is cannot be asked about: it is not as if there were none.
#[test]
fn a_working_folder_that_was_unmounted_has_no_policy_file_that_is_believed() {
    let place = shared();
    let mount = place.0.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let relent = place.0.path().join("relent");
    let line = "mount -t tmpfs none mount && cd mount && printf '[policy]\\nmax_attempts = 2\\n' > relent.toml && umount -l . || exit 99
        \"$0\" run --base 1ms -- false; \"$0\" run --report report -- true; \"$0\" run --policy relent.toml -- true";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", line]).arg(&relent).current_dir(place.0.path()).env("HOME", "/dev/null");
    let output = command.env_remove("RELENT_KEY").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(99) || said.contains("unshare:") {
        eprintln!("SKIPPED a_working_folder_that_was_unmounted_has_no_policy_file_that_is_believed: {said}");
        return;
    }
    let why =
        "the folder that it is looked for from has no path here: it, or what it is on, was moved, removed or unmounted";
    assert!(said.contains(&format!("relent.toml, found in this folder, is ignored: {why}")), "{said}");
    assert!(said.contains("attempt 1 of 8: exit 1"), "{said}");
    assert!(said.contains(&format!("report: {why}")), "{said}");
    assert_eq!(output.status.code(), Some(0), "who has named it means it: {said}");
}
