//! The access check: every call passes here, and a call that is not in the table of calls is refused.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use tonic::{Code, Status};

use super::{
    Server, body,
    face::{self, Face},
};
use crate::{
    access::{self, Access, Answered, Auth, Call, Caller, Certificate, Effect, Shown, Site, Subject},
    api::{ErrorCode, ErrorDetail},
    dashboard, grpc,
};

/// What decides about the calls at one address.
pub(super) struct Gate {
    pub(super) rights: Arc<Access>,
    /// Whether callers at this address must say who they are.
    pub(super) auth: Auth,
    pub(super) face: Arc<Face>,
}

/// Passes on a call that the caller may make, and writes the audit lines.
pub(super) async fn access(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let rights = &gate.rights;
    let is_grpc = is_grpc(request.headers());
    let call = match find(&request, is_grpc) {
        Found::Call(call) => call,
        Found::Nothing => return next.run(request).await,
        Found::Refused(response) => return response,
    };
    let certificate = request.extensions().get::<Certificate>();
    // A session is for pages: a gRPC call with its cookie is one without a token.
    let session = if is_grpc { None } else { session(&gate.face, request.headers()) };
    let (headers, path) = (request.headers(), request.uri().path());
    let shown = Shown { auth: gate.auth, headers, path, certificate, session };
    let caller = match rights.admit(call, shown).await {
        Ok(caller) => caller,
        Err(error) if is_grpc => return grpc::refuse(error),
        Err(error) if call.is_page() => {
            let address = request.uri().path_and_query().map_or("/", |address| address.as_str());
            return dashboard::refused(error, request.headers(), address, gate.face.prefix());
        }
        Err(error) => return error.into_response(),
    };
    if caller.session().is_some()
        && !call.is_get()
        && let Err(error) = check_page(&request)
    {
        let response = error.into_response();
        rights.note(&caller, call, (request.uri().path(), ""), Answered::Http(response.status()), None);
        return response;
    }
    let path = if call.destructive { request.uri().path().to_owned() } else { String::new() };
    let subject = Subject::default();
    if call.destructive && is_grpc {
        request.extensions_mut().insert(subject.clone());
    }
    let caller = Arc::new(caller);
    request.extensions_mut().insert(Arc::clone(&caller));
    let response = next.run(request).await;
    let effect = response.extensions().get::<Effect>();
    rights.note(&caller, call, (&path, subject.get()), answered(call, &response), effect);
    response
}

/// A text that is no session. Of two cookies one may come from another page, so neither counts.
const NO_SESSION: &str = "";

fn session<'a>(face: &Face, headers: &'a HeaderMap) -> Option<&'a str> {
    match face.cookie.read(headers) {
        face::Shown::One(text) => Some(text),
        face::Shown::Several => Some(NO_SESSION),
        face::Shown::Nothing => None,
    }
}

/// What the caller of a call that goes on has shown, to be checked again and again.
pub(super) struct Standing {
    call: &'static Call,
    headers: HeaderMap,
    certificate: Option<Certificate>,
}

impl Standing {
    /// What this request shows.
    ///
    /// # Errors
    /// `forbidden` (403) if the call is not in the table of calls.
    pub(super) fn of(call: &str, request: &Request) -> Result<Self, ErrorDetail> {
        let call = Call::named(call)
            .ok_or_else(|| ErrorDetail::new(ErrorCode::Forbidden, "no caller may make this call"))?;
        let certificate = request.extensions().get::<Certificate>().cloned();
        Ok(Self { call, headers: request.headers().clone(), certificate })
    }

    /// Whether the caller may still make the call.
    ///
    /// # Errors
    /// If that cannot be told now.
    pub(super) async fn holds(&self, server: &Server) -> Result<bool, ErrorDetail> {
        let session = session(&server.face, &self.headers);
        let certificate = self.certificate.as_ref();
        let shown = Shown { auth: server.auth(), headers: &self.headers, path: "", certificate, session };
        server.access.still_admits(self.call, shown).await
    }
}

/// Refuses a change that a browser may have sent for a page of another origin. A form cannot send JSON, and a
/// script of another origin cannot hide where it comes from.
///
/// # Errors
/// `forbidden` (403) or `unsupported_media_type` (415).
pub(super) fn check_page(request: &Request) -> Result<(), ErrorDetail> {
    if request.extensions().get::<Site>() != Some(&Site::Own) {
        return Err(access::foreign_page());
    }
    body::check_json(request.headers())
}

/// The caller that the access check found. Without one, the request did not pass the check.
///
/// # Errors
/// `forbidden` (403).
pub(super) fn caller_of(request: &Request) -> Result<Arc<Caller>, ErrorDetail> {
    let caller = request.extensions().get::<Arc<Caller>>().cloned();
    caller.ok_or_else(|| ErrorDetail::new(ErrorCode::Forbidden, "this call has passed no access check"))
}

/// How a call was answered. A failed gRPC call has its status in its headers; a successful one has none there
/// yet.
fn answered(call: &Call, response: &Response) -> Answered {
    if call.is_grpc() {
        Answered::Grpc(Status::from_header_map(response.headers()).map_or(Code::Ok, |told| told.code()))
    } else {
        Answered::Http(response.status())
    }
}

/// The call that a request makes.
enum Found {
    Call(&'static Call),
    /// No route matches: the router answers 404.
    Nothing,
    /// A call that is not in the table, with its answer.
    Refused(Response),
}

fn find(request: &Request, is_grpc: bool) -> Found {
    if is_grpc {
        let name = request.uri().path().trim_start_matches('/');
        return Call::named(name).filter(|call| call.is_grpc()).map_or_else(
            || {
                Found::Refused(
                    Status::unimplemented("there is no such service or method").into_http::<Body>(),
                )
            },
            Found::Call,
        );
    }
    let Some(route) = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str) else {
        return Found::Nothing;
    };
    if let Some(call) = Call::of_route(request.method().as_str(), route) {
        return Found::Call(call);
    }
    let mut allowed = Vec::new();
    for method in Call::methods(route) {
        allowed.push(method);
        if method == "GET" {
            allowed.push("HEAD");
        }
    }
    Found::Refused(if allowed.is_empty() {
        // A route that is missing in the table is a mistake in this program: refuse it.
        ErrorDetail::new(ErrorCode::Forbidden, "no caller may make this call").into_response()
    } else {
        wrong_method(request.method().as_str(), &allowed.join(","))
    })
}

fn wrong_method(method: &str, allowed: &str) -> Response {
    let message = format!("{method} is not allowed here");
    let error =
        ErrorDetail::new(ErrorCode::MethodNotAllowed, message).hint("the Allow header lists the methods");
    let mut response = error.into_response();
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Whether a request is a gRPC call.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.starts_with(b"application/grpc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{CALLS, PAGES};

    /// Routes as the sources of the router name them, with their methods.
    fn routes() -> Vec<(String, Vec<&'static str>)> {
        let sources = concat!(
            include_str!("routes.rs"),
            include_str!("routes/consumers.rs"),
            include_str!("routes/operators.rs"),
            include_str!("routes/export.rs"),
            include_str!("routes/schedules.rs"),
            include_str!("routes/sessions.rs"),
            include_str!("routes/tokens.rs"),
            include_str!("watched/mod.rs"),
            include_str!("../dashboard.rs")
        );
        let mut routes = Vec::new();
        for piece in sources.split(".route(\"").skip(1) {
            let (route, rest) = piece.split_once('"').unwrap();
            let handlers = rest.lines().next().unwrap();
            let methods = ["get", "post", "put", "delete"];
            let methods = methods.into_iter().filter(|method| handlers.contains(&format!("{method}(")));
            routes.push((route.to_owned(), methods.collect()));
        }
        routes
    }

    #[test]
    fn routes_and_the_table_of_calls_agree() {
        let mut found: Vec<String> = routes()
            .into_iter()
            .flat_map(|(route, methods)| {
                assert!(!methods.is_empty(), "{route}");
                methods.into_iter().map(move |method| format!("{} {route}", method.to_uppercase()))
            })
            .collect();
        let mut known: Vec<_> = CALLS
            .iter()
            .chain(PAGES.iter().filter(|page| page.scope.is_none()))
            .map(|call| call.name)
            .filter(|name| name.contains(' '))
            .collect();
        found.sort();
        known.sort_unstable();
        assert_eq!(found, known, "routes on the left, calls on the right");
    }

    #[test]
    fn pages_and_the_table_of_pages_agree() {
        let drawn = dashboard::PAGES.map(|page| format!("GET {}", page.route()));
        let listed = PAGES.iter().filter(|page| page.scope.is_some()).map(|page| page.name);
        assert!(drawn.iter().eq(listed), "{drawn:?}");
    }

    #[test]
    fn a_grpc_refusal_is_sent_in_headers_alone() {
        let error = ErrorDetail::new(ErrorCode::Unauthorized, "no 100 % token").hint("m…");
        let response = grpc::refuse(error);
        let told = Status::from_header_map(response.headers()).unwrap();
        assert_eq!((response.status().as_u16(), told.code()), (200, tonic::Code::Unauthenticated));
        assert!(told.message().contains("no 100 % token"), "{told}");
    }

    #[test]
    fn a_grpc_call_that_is_not_in_the_table_is_refused() {
        for path in ["/windlass.v1.Moon/Land", "/v1/tasks", "/GET%20/v1/tasks", "/"] {
            let request = Request::post(path)
                .header(header::CONTENT_TYPE, "application/grpc+proto")
                .body(Body::empty())
                .unwrap();
            assert!(matches!(find(&request, is_grpc(request.headers())), Found::Refused(_)), "{path}");
        }
    }
}
