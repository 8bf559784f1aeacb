//! What statements beyond the dialect answer over several boards, by hand.
