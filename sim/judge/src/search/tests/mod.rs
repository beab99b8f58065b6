//! Tests of the search: against one that tries every order, on histories that hold hints that it must not need, and for
//! what it says when there is no order.

mod agreement;
mod brute;
mod shortcuts;
mod shrinking;
mod small;
