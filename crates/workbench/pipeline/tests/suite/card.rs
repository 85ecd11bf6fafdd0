//! Files of inline cards: keys that others disable.

use forebay_pipeline::scenario::CardScenario;

const CARD: &str = "model = \"inline-card\"\npayload = 1000\noffered = \"500 Mbit/s\"\n";
const RATE: &str = "[[resource]]\nname = \"memory\"\nrate = \"8 Gbit/s\"\n";
const SEEN: &str = "[[resource]]\nname = \"memory\"\nseen = \"893 Mbit/s\"\nbusy = 0.38\n";

fn card(text: &str) -> Result<CardScenario, Vec<String>> {
    let read = CardScenario::parse(&format!("{CARD}{text}"), "card.toml", &[]);
    read.map_err(|errors| errors.findings().iter().map(|one| one.problem().to_string()).collect())
}

fn notes(text: &str) -> Vec<String> {
    card(text).unwrap().notes
}

#[test]
fn keys_without_an_effect_are_noted() {
    let drawn = "distribution = \"exponential\"\n";
    for key in ["seed", "runs"] {
        let text = format!("{key} = 3\n{RATE}");
        assert_eq!(notes(&text), [format!("`{key}` has no effect with `distribution = constant`")]);
        assert_eq!(notes(&format!("{drawn}{text}")), [""; 0]);
    }
    let overheads = "overhead_bytes = 38\noverhead = \"1 us\"\n";
    let nothing = ["overhead_bytes", "overhead"]
        .map(|key| format!("`{key}` of `memory` has no effect: nothing crosses it"));
    let mac = RATE.replace("memory", "mac");
    assert_eq!(notes(&format!("{mac}{RATE}{overheads}")), [""; 0]);
    assert_eq!(notes(&format!("{mac}{RATE}crossings = 0\n{overheads}")), nothing);
    assert_eq!(notes(&format!("memory_transfers = 0\n{mac}{RATE}{overheads}")), nothing);
    assert_eq!(notes(&format!("headers = 58\n{SEEN}")).len(), 1);
    assert_eq!(notes(&format!("headers = 58\n{SEEN}{mac}")), [""; 0]);
    let refused = card(&format!("memory_transfers = 6\n{SEEN}")).unwrap_err();
    assert_eq!(refused, ["`memory_transfers` means nothing where `memory` has `seen` and `busy`"]);
}
