//! What a token looks like: `wl_`, its id, `_`, its secret. The id finds the token in the store; a hash of
//! the whole text proves it. The text of a session is the same with `ws_`, so that neither can be shown as
//! the other.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
};
use subtle::ConstantTimeEq as _;
use windlass_core::{Error, Name, TokenHash};

/// What every token begins with, so that a scanner for secrets can find one that leaked.
const PREFIX: &str = "wl_";
/// What the text of every session begins with.
const SESSION_PREFIX: &str = "ws_";
/// Random bytes of an id: enough that two tokens never share one.
const ID_BYTES: usize = 8;
/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Letters of a whole token.
const TOKEN_LETTERS: usize = PREFIX.len() + 2 * ID_BYTES + 1 + (SECRET_BYTES * 4).div_ceil(3);

/// A token or a session that was just made.
pub struct Fresh {
    /// The part that is no secret.
    pub id: Name,
    /// The whole text. It is shown once: the store keeps only its hash.
    pub text: String,
    /// What a store keeps of it.
    pub hash: TokenHash,
}

/// Makes a token.
///
/// # Errors
/// If the system has no random numbers.
pub fn make() -> Result<Fresh, Error> {
    fresh("token", PREFIX)
}

/// Makes the text of a session.
///
/// # Errors
/// If the system has no random numbers.
pub fn make_session() -> Result<Fresh, Error> {
    fresh("session", SESSION_PREFIX)
}

fn fresh(what: &str, prefix: &str) -> Result<Fresh, Error> {
    let random = SystemRandom::new();
    let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
    let filled = random.fill(&mut id).and_then(|()| random.fill(&mut secret));
    filled.map_err(|_| Error::Unavailable("the system has no random numbers".to_owned()))?;
    let id = Name::new(what, format!("{:016x}", u64::from_be_bytes(id)))?;
    let text = format!("{prefix}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
    let hash = hash(&text);
    Ok(Fresh { id, text, hash })
}

/// The token in an Authorization header.
pub fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The id in a token, if the text has the shape of one.
pub fn id_of(text: &str) -> Option<Name> {
    id_after(PREFIX, text)
}

/// The id in the text of a session, if the text has the shape of one.
pub fn session_id_of(text: &str) -> Option<Name> {
    id_after(SESSION_PREFIX, text)
}

fn id_after(prefix: &str, text: &str) -> Option<Name> {
    let well_formed = text.len() == TOKEN_LETTERS && text.is_ascii();
    let (id, _) = text.strip_prefix(prefix).filter(|_| well_formed)?.split_once('_')?;
    let is_hex = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| Name::new("token", id).ok())?
}

/// Whether a text is the token of this hash. The comparison takes the same time for every text.
pub fn is_of(text: &str, kept: TokenHash) -> bool {
    hash(text).0.ct_eq(&kept.0).into()
}

fn hash(text: &str) -> TokenHash {
    let mut hash = [0; 32];
    // SHA-256 has 32 bytes.
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    TokenHash(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_id_and_proved_by_its_text() {
        let (one, other) = (make().unwrap(), make().unwrap());
        assert_eq!(one.text.len(), TOKEN_LETTERS);
        assert_eq!(id_of(&one.text), Some(one.id.clone()));
        assert!(is_of(&one.text, one.hash));
        assert!(!is_of(&other.text, one.hash));
        let forged = format!("wl_{}_{}", one.id, &other.text[20..]);
        assert_eq!(id_of(&forged), Some(one.id));
        assert!(!is_of(&forged, one.hash));
    }

    #[test]
    fn a_session_is_no_token_and_a_token_no_session() {
        let (token, session) = (make().unwrap(), make_session().unwrap());
        assert_eq!(session_id_of(&session.text), Some(session.id));
        assert_eq!((id_of(&session.text), session_id_of(&token.text)), (None, None));
        let disguised = session.text.replacen(SESSION_PREFIX, PREFIX, 1);
        assert!(id_of(&disguised).is_some() && !is_of(&disguised, session.hash));
    }

    #[test]
    fn a_token_is_compared_without_an_early_exit() {
        // Compare hashes, never texts, and only with `ct_eq`: a derived `==` stops at the first difference.
        let here = include_str!("token.rs").split("#[cfg(test)]").next().unwrap();
        let compare = here.split("pub fn is_of").nth(1).unwrap().split('}').next().unwrap();
        assert!(compare.contains("hash(text).0.ct_eq(&kept.0)"), "{compare}");
        let core = include_str!("../../../windlass-core/src/access/token.rs");
        let derives = core.split("pub struct TokenHash").next().unwrap().lines().next_back().unwrap();
        assert_eq!(derives, "#[derive(Clone, Copy)]");
        let look_up = include_str!("../access.rs").split("async fn verify").nth(1).unwrap();
        let look_up = look_up.split("async fn look_up").next().unwrap();
        assert!(look_up.contains("token::is_of(text, record.hash)") && !look_up.contains("=="), "{look_up}");
    }

    #[test]
    fn a_text_without_the_form_of_a_token_is_not_looked_up() {
        let good = make().unwrap().text;
        for text in
            ["", "wl_", "x", &good[1..], &format!("{good}A"), &good.replace("wl_", "xx_"), &"ä".repeat(40)]
        {
            assert_eq!(id_of(text), None, "{text}");
        }
        assert_eq!(bearer("Bearer a"), Some("a"));
        assert_eq!(bearer("bearer  a "), Some("a"));
        assert_eq!(bearer("Basic a"), None);
        assert_eq!(bearer("a"), None);
    }
}
