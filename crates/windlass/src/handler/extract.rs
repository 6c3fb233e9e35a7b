//! What handlers get besides their payload: state, looked up by its type at compile time.
//!
//! A builder's state is a list of types, `(B, (A, ()))` after `.state(a).state(b)`. [`Has`] finds one type in
//! the list, [`Provides`] the types that one handler needs.

use std::ops::{Deref, DerefMut};

/// A value that the worker got with `.state(…)` and that a handler receives by its type.
///
/// Each call gets a clone, so put a value that is costly to clone into an `Arc`. Two values of one type need
/// two wrapper types, because the type identifies the value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// The list of states has a `T`, at a place that the compiler finds.
pub trait Has<T, Place> {
    /// A clone of the state.
    fn get(&self) -> T;
}

/// The place of a state: the head of the list.
#[derive(Debug)]
pub struct Here;

/// The place of a state: further down the list.
#[derive(Debug)]
pub struct There<Place>(Place);

impl<T: Clone, Rest> Has<T, Here> for (T, Rest) {
    fn get(&self) -> T {
        self.0.clone()
    }
}

impl<T, Other, Rest: Has<T, Place>, Place> Has<T, There<Place>> for (Other, Rest) {
    fn get(&self) -> T {
        self.1.get()
    }
}

/// The place of a state that is not in the list.
#[derive(Debug)]
pub struct Nowhere;

/// A state that is in the empty list. No type implements it.
///
/// It exists for the compiler's message. Without an implementation of [`Has`] for the empty list, the
/// compiler would complain about a worker without states that `()` is not the handler's list of states.
#[diagnostic::on_unimplemented(
    message = "this worker has no state of type `{Self}`",
    label = "a handler asks for `State<{Self}>`",
    note = "call `.state(value)` with a `{Self}` before `.handle(…)`"
)]
pub trait Absent: Sized {
    /// Never called.
    fn absent() -> Self;
}

impl<T: Absent> Has<T, Nowhere> for () {
    fn get(&self) -> T {
        T::absent()
    }
}

/// The list of states has everything that a handler needs.
pub trait Provides<States, Places> {
    /// Clones of the states that the handler needs.
    fn provide(&self) -> States;
}

impl<S> Provides<(), ()> for S {
    fn provide(&self) {}
}

impl<S, A, PA> Provides<(A,), (PA,)> for S
where
    S: Has<A, PA>,
{
    fn provide(&self) -> (A,) {
        (self.get(),)
    }
}

impl<S, A, PA, B, PB> Provides<(A, B), (PA, PB)> for S
where
    S: Has<A, PA> + Has<B, PB>,
{
    fn provide(&self) -> (A, B) {
        (<S as Has<A, PA>>::get(self), <S as Has<B, PB>>::get(self))
    }
}

impl<S, A, PA, B, PB, C, PC> Provides<(A, B, C), (PA, PB, PC)> for S
where
    S: Has<A, PA> + Has<B, PB> + Has<C, PC>,
{
    fn provide(&self) -> (A, B, C) {
        (<S as Has<A, PA>>::get(self), <S as Has<B, PB>>::get(self), <S as Has<C, PC>>::get(self))
    }
}
