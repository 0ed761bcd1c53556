//! A future that is polled again at once where it wakes itself.
//!
//! A connection of hyper wakes its own task while it runs: who reads a body and who sends it live in one
//! task. The runtime takes that for a task that yields; it puts it at the end of the queue and wakes
//! another thread to help, which costs more than the rest of the request.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use parking_lot::Mutex;

/// More often than this it is not polled in a row: others want to run too.
const TURNS: usize = 16;

/// A future, and the waker it is given.
#[derive(Debug)]
pub(crate) struct Steady<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Bell(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    polling: bool,
    rung: bool,
    outer: Option<Waker>,
}

impl<F: Future> Steady<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        Self { future: Box::pin(future), bell, waker }
    }
}

impl<F: Future> Future for Steady<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.bell.begin(context.waker());
        for _ in 0..TURNS {
            let mut own = Context::from_waker(&this.waker);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut own) {
                return Poll::Ready(output);
            }
            if this.bell.is_quiet() {
                return Poll::Pending;
            }
        }
        this.bell.0.lock().polling = false;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Bell {
    fn begin(&self, outer: &Waker) {
        let mut state = self.0.lock();
        state.polling = true;
        state.rung = false;
        match &mut state.outer {
            Some(known) => known.clone_from(outer),
            none => *none = Some(outer.clone()),
        }
    }

    /// Whether nobody rang since it was last looked at. From then on, whoever rings wakes the task.
    fn is_quiet(&self) -> bool {
        let mut state = self.0.lock();
        let quiet = !std::mem::take(&mut state.rung);
        state.polling = !quiet;
        quiet
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.0.lock();
        if state.polling {
            state.rung = true;
            return;
        }
        let outer = state.outer.clone();
        drop(state);
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}
