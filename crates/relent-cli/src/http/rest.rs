//! What is left of a request when its answer is whole. The attempt has succeeded by then: whatever ends the wait for the rest ends that alone.

use super::{
    attempt::{Line, Success, Terms},
    failure::Broken,
    linger,
};
use tokio::time::{self, Instant};

/// The same success, when the rest of its request is sent, cannot be, or has had its time, unless it cannot be read.
pub(super) async fn sent(
    mut success: Success,
    (terms, line): (&Terms, &Line),
    ends: impl IntoIterator<Item = Option<Instant>>,
) -> Result<Success, Broken> {
    let Some(mut left) = success.left.take() else { return Ok(success) };
    let wait = async {
        terms.patience.wait(&line.pulse, left.leaves()).await??;
        time::timeout(linger::LONGEST, left.ends()).await.ok()
    };
    let ended = match ends.into_iter().flatten().min() {
        Some(end) => time::timeout_at(end, wait).await.unwrap_or_default(),
        None => wait.await,
    };
    match line.unread.take() {
        Some(fault) => Err(fault.into()),
        None => Ok(Success { doubt: success.doubt.or(left.doubt(ended.is_some())), ..success }),
    }
}
