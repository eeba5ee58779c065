//! Access to the APIs that the manager serves: reviews by the API server of the manager cluster.
//!
//! | file | concept |
//! |---|---|
//! | `reviews` | the two kinds of reviews |
//! | `tokens` | the user of a bearer token |
//! | `authorization` | what the user may do |
//! | `review_cache` | answers of the API server, kept for a short time |

mod authorization;
mod review_cache;
pub(crate) mod reviews;
mod tokens;

pub(crate) use self::{
    authorization::Authorizer,
    review_cache::ReviewCache,
    tokens::{AuthenticationError, TokenAuthenticator},
};
