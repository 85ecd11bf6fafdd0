//! The chain that the `next` of stages make.

use forebay_scenario::Section;

use crate::description::Stage;

const HELP: &str = "a packet passes all stages, one after the other, each once: change a `next`";

/// The stages' numbers in the order of a packet's way, or findings that say why there is none.
///
/// A stage without `next` is followed by the next one of the file, unless what the file says has
/// another before that one, or has that one lead to this: then it is the last.
pub(super) fn of(stages: &[Stage], sections: &[Section<'_>]) -> Option<Vec<usize>> {
    let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let mut next = vec![None; stages.len()];
    for (at, section) in sections.iter().enumerate().filter(|(_, section)| section.has("next")) {
        let word = section.word("next", &names)?;
        next[at] = names.iter().position(|name| *name == word);
    }
    let told = next.clone();
    for at in 0..stages.len() - 1 {
        let comes_back = way(&told, at + 1).take(stages.len()).any(|stage| stage == at);
        if !sections[at].has("next") && !told.contains(&Some(at + 1)) && !comes_back {
            next[at] = Some(at + 1);
        }
    }
    let before = |to: usize| (0..stages.len()).filter(|&from| next[from] == Some(to)).collect::<Vec<_>>();
    for to in 0..stages.len() {
        if let [one, two, ..] = before(to)[..] {
            let message = format!("`{}` and `{}` both lead to `{}`", names[one], names[two], names[to]);
            sections[two].conflict("next", message, HELP);
            return None;
        }
    }
    for begin in 0..stages.len() {
        // No stage follows two others, so a walk that closes a cycle returns to its first stage.
        let round: Vec<usize> = way(&next, begin).take(stages.len() + 1).collect();
        if round[1..].contains(&begin) {
            let length = 1 + round[1..].iter().take_while(|&&at| at != begin).count();
            let shown: Vec<&str> = round[..=length].iter().map(|&at| names[at]).collect();
            sections[round[length - 1]].conflict("next", format!("{} is a cycle", shown.join(" -> ")), HELP);
            return None;
        }
    }
    let mut heads = (0..stages.len()).filter(|&at| before(at).is_empty());
    let first = heads.next()?;
    if let Some(other) = heads.next() {
        let message = format!("two chains begin, with `{}` and with `{}`", names[first], names[other]);
        sections[other].conflict("name", message, HELP);
        return None;
    }
    Some(way(&next, first).collect())
}

/// The stages from one on.
fn way(next: &[Option<usize>], first: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(first), |&at| next[at])
}
