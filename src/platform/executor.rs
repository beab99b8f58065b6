//! Lets hyper start its tasks on the runtime at hand.

/// Spawns on tokio, real or simulated. hyper-util's own executor knows the real one only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor;

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        tokio::spawn(task);
    }
}
