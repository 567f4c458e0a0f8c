//! A Worker with two limits: one for each address, and one for each user.

use tollgate::Policy;
use tollgate::cloudflare::{Limits, client_address};
use worker::{Context, Env, Request, Response, Result, RouteContext, Router, event};

/// The Durable Object that holds the states of one key.
pub use tollgate::cloudflare::RateLimiterObject;

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    let addresses = Limits::new(&env, "LIMITERS", Policy::token_bucket(50, 10, "1m")?.named("address")?)?;
    let decision = addresses.hit(&format!("address:{}", client_address(&request)?), 1).await?;
    if !decision.allowed {
        return addresses.denial(&decision);
    }
    Router::new()
        .get_async("/users/:user", greet)
        .delete_async("/users/:user", forgive)
        .post_async("/users/:user/login", login)
        .run(request, env)
        .await
}

async fn greet(_request: Request, context: RouteContext<()>) -> Result<Response> {
    let (users, key) = limits_of_user(&context)?;
    let decision = users.hit(&key, 1).await?;
    if !decision.allowed {
        return users.denial(&decision);
    }
    users.with_headers(Response::ok(format!("Hello, {key}\n"))?, &decision)
}

/// Counts a login only if it fails. However many arrive at once, three are checked; a crash counts as a failure.
async fn login(request: Request, context: RouteContext<()>) -> Result<Response> {
    let failures = Limits::new(&context.env, "LIMITERS", Policy::fix_window_per_key(3, "15m")?.named("failures")?)?;
    let user = context.param("user").map_or("nobody", String::as_str);
    let attempt = failures.reserve(&format!("login:{user}"), 1.into(), Some("30s".into())).await?;
    let Some(reservation) = attempt.reservation else {
        return failures.denial(&attempt.decision);
    };
    // A real Worker would look the password up.
    if request.headers().get("Authorization")?.as_deref() == Some("right") {
        failures.cancel(reservation).await?;
        return Response::ok("welcome\n");
    }
    failures.settle(reservation, None).await?;
    Response::error("wrong", 401)
}

/// Resets the limits of a user. A real Worker would check who is calling.
async fn forgive(_request: Request, context: RouteContext<()>) -> Result<Response> {
    let (users, key) = limits_of_user(&context)?;
    let had_used = users.reset(&key).await?;
    Response::ok(if had_used { "forgiven\n" } else { "nothing to forgive\n" })
}

fn limits_of_user(context: &RouteContext<()>) -> Result<(Limits, String)> {
    let limits = Limits::new(&context.env, "LIMITERS", Policy::sliding_window(100, "1h")?.named("user")?)?;
    let user = context.param("user").map_or("nobody", String::as_str);
    Ok((limits, format!("user:{user}")))
}
