use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tollgate::tower::{NoKey, RateLimitLayer, key};
use tollgate::{Error, Policy, SharedLimiter, SystemClock};

type Limiter = Arc<SharedLimiter<String, SystemClock>>;

fn limiter(policy: Policy) -> Result<Limiter, Error> {
    Ok(Arc::new(SharedLimiter::new(policy, SystemClock)?))
}

/// Returns the key of the address at the other end of the connection.
fn client(parts: &Parts) -> Result<String, NoKey> {
    key::extension(|ConnectInfo(client): &ConnectInfo<SocketAddr>| key::address(client.ip()))(parts)
}

async fn login(body: String) -> StatusCode {
    if body == "secret" { StatusCode::NO_CONTENT } else { StatusCode::UNAUTHORIZED }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests = RateLimitLayer::new(limiter(Policy::sliding_window(5, "1m")?)?, client)?;
    let failures = limiter(Policy::sliding_window(3, "10m")?.named("logins")?)?;
    let failures =
        RateLimitLayer::charging(failures, client, |response| u64::from(response.status == StatusCode::UNAUTHORIZED));
    let app =
        Router::new().route("/", get(async || "Hello\n").layer(requests)).route("/login", post(login).layer(failures));

    let port = std::env::var("PORT").map_or(Ok(8000), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
