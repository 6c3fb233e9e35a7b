//! Every page in both themes at both widths: nothing is reported by axe-core, the policy or the console, and
//! a picture of each is kept for people in `target/screens`.

use e2e::{browser::Look, process};

use crate::{
    axe,
    rig::{PAGES, Rig},
};

#[tokio::test]
async fn every_page_is_fit_for_everyone_in_both_themes() {
    let rig = Rig::full().await;
    let script = axe::script();
    let folder = process::windlass().unwrap().parent().unwrap().parent().unwrap().join("screens");
    std::fs::create_dir_all(&folder).unwrap();
    let mut wrong = Vec::new();
    for (width, dark) in [(1440, false), (1440, true), (375, false), (375, true)] {
        rig.browser.look(Look { width, dark }).await.unwrap();
        for (name, path) in PAGES {
            rig.open(path).await;
            rig.browser.until("document.querySelector('main h1')").await.unwrap();
            let theme = if dark { "dark" } else { "light" };
            for finding in axe::findings(&rig.browser, &script).await {
                wrong.push(format!("{name} {width} {theme}: {finding}"));
            }
            let sideways = rig.browser.run("return document.documentElement.scrollWidth", &[]).await.unwrap();
            if sideways.as_u64() > Some(u64::from(width)) {
                wrong.push(format!("{name} {width}: the page is {sideways} wide"));
            }
            let picture = rig.browser.picture().await.unwrap();
            std::fs::write(folder.join(format!("{name}-{width}-{theme}.png")), picture).unwrap();
        }
    }
    wrong.extend(rig.browser.console().await.unwrap());
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
    rig.browser.close().await.unwrap();
}
