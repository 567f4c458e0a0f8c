//! Limits behind a layer of tower.

use core::future::Future;

use worker::send::SendFuture;

use crate::cloudflare::{Limits, LimitsError};
use crate::tower::AsyncLimiter;
use crate::{Decision, Policies, Reservation, Reserving, Settlement, Span};

impl AsyncLimiter for Limits {
    type Error = LimitsError;

    fn policies(&self) -> &Policies {
        Limits::policies(self)
    }

    fn hit(&self, key: String, cost: u64) -> impl Future<Output = Result<Decision, LimitsError>> + Send {
        SendFuture::new(async move { Limits::hit(self, &key, cost).await })
    }

    fn reserve(
        &self,
        key: String,
        cost: u64,
        ttl: Option<Span>,
    ) -> impl Future<Output = Result<Reserving<String>, LimitsError>> + Send {
        SendFuture::new(async move { Limits::reserve(self, &key, cost.into(), ttl).await })
    }

    fn settle(
        &self,
        reservation: Reservation<String>,
        used: u64,
    ) -> impl Future<Output = Result<Settlement, LimitsError>> + Send {
        SendFuture::new(async move { Limits::settle(self, reservation, Some(used.into())).await })
    }

    fn settle_dropped(&self, reservation: Reservation<String>) {
        let limits = self.clone();
        worker::wasm_bindgen_futures::spawn_local(async move {
            let _charged_at_its_end = limits.settle(reservation, None).await;
        });
    }
}
