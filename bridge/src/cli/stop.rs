//! How a server is told to end: Ctrl-C, or what a service manager sends. The first time it answers what was asked; the
//! second time it ends at once.

use anyhow::Context as _;
use tokio::sync::oneshot;

/// The signals that end the program, from now on.
#[derive(Debug)]
pub(crate) struct Stop {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Stop {
    /// Signals that come from now on do not end the program by themselves.
    pub(crate) fn new() -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let [interrupted, terminated] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
            let why = "signals cannot be waited for";
            Ok(Self { signals: [interrupted.context(why)?, terminated.context(why)?] })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Runs what ends by itself some time after the first signal, which is told to it; the second ends it.
    pub(crate) async fn then_at_once<F>(&mut self, run: impl FnOnce(FirstSignal) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        let (told, first) = oneshot::channel();
        let running = run(Box::pin(async move {
            // Only a signal ends the wait: where nobody can tell of one any more, there is none.
            if first.await.is_err() {
                std::future::pending().await
            }
        }));
        tokio::pin!(running);
        tokio::select! {
            ended = &mut running => return ended,
            came = self.signal() => came?,
        }
        let _ = told.send(()); // it may have ended in this moment
        tokio::select! {
            ended = &mut running => ended,
            came = self.signal() => {
                came?;
                anyhow::bail!("told to stop twice: calls that were under way have no answer")
            }
        }
    }

    #[cfg(unix)]
    pub(crate) async fn signal(&mut self) -> anyhow::Result<()> {
        let [interrupted, terminated] = &mut self.signals;
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        Ok(())
    }

    #[cfg(not(unix))]
    pub(crate) async fn signal(&mut self) -> anyhow::Result<()> {
        tokio::signal::ctrl_c().await.context("Ctrl-C cannot be waited for")
    }
}

/// Done when the first signal has come.
pub(crate) type FirstSignal = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
