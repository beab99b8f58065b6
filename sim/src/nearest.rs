//! Which of the known names somebody may have meant who typed one that does not exist.

use gatehouse::planted::Bug;

/// The name that needs the fewest changes; the first of several, none only if there are no names.
pub(crate) fn nearest<'n>(
    typed: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    // Names are short; of a long text its beginning will do.
    let typed: Vec<char> = typed.chars().take(64).collect();
    names.into_iter().min_by_key(|name| distance(&typed, name))
}

/// Every name that [`Bug::named`] knows: each bug's, and behind it those of its switches.
pub fn bug_names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for slug in Bug::ALL.map(Bug::slug) {
        let bug = slug.split('/').next().unwrap_or(slug);
        if !names.contains(&bug) {
            names.push(bug);
        }
        if bug != slug {
            names.push(slug);
        }
    }
    names
}

/// What to say of a planted bug that does not exist.
pub fn no_such_bug(typed: &str) -> String {
    let near = nearest(typed, bug_names()).unwrap_or_default();
    format!(
        "there is no planted bug \"{}\"; did you mean \"{near}\"? `gatehouse-sim bugs --help` lists them",
        typed.escape_debug()
    )
}

/// Characters to insert, to remove or to replace (Levenshtein).
fn distance(one: &[char], other: &str) -> usize {
    let mut row: Vec<usize> = (0..=one.len()).collect();
    for (number, theirs) in other.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], number + 1);
        for (at, ours) in one.iter().enumerate() {
            let replaced = corner + usize::from(*ours != theirs);
            corner = row[at + 1];
            row[at + 1] = replaced.min(corner + 1).min(row[at] + 1);
        }
    }
    row[one.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_needs_the_fewest_changes() {
        let names = ["token-lag", "token-limits", "new-enemy"];
        assert_eq!(nearest("token-limit", names), Some("token-limits"));
        assert_eq!(nearest("", names), Some("token-lag"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn every_name_selects_a_bug() {
        let names = bug_names();
        assert!(names.iter().all(|name| !Bug::named(name).is_empty()));
        assert!(names.contains(&"authn-changepw-toctou"));
        assert!(names.contains(&"authn-changepw-toctou/c"));
        assert_eq!(
            no_such_bug("authn-changepw-toctuo"),
            "there is no planted bug \"authn-changepw-toctuo\"; did you mean \"authn-changepw-toctou\"? \
             `gatehouse-sim bugs --help` lists them"
        );
    }
}
