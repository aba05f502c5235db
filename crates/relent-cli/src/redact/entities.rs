//! The signs and letters that pages have names for.

/// The sign that pages call so (in small letters), but for the backslash, of which nothing is left in the end, and for others of HTML 5 than
/// letters of Latin alphabets.
pub(super) fn named(name: &[char]) -> Option<char> {
    let find = |all: &[(&str, char)]| {
        let place = all.binary_search_by(|(known, _)| known.chars().cmp(name.iter().copied()));
        place.ok().map(|place| all[place].1)
    };
    find(&ASCII).or_else(|| find(&BEYOND_ASCII))
}

/// The sign that a name begins with which browsers know without a semicolon behind it, and how long its name is.
pub(super) fn begun(name: &[char]) -> Option<(char, usize)> {
    let is_one = |length: &usize| {
        let name = name[..*length].iter().copied();
        WITHOUT_END.binary_search_by(|known| known.chars().cmp(name.clone())).is_ok()
    };
    let length = (0..=name.len().min(LONGEST)).rev().find(is_one)?;
    Some((named(&name[..length])?, length))
}

/// What stands for two letters that have one name, `fj`: no text has it.
pub(super) const FJ: char = '\u{fdd0}';

/// The longest of those names.
const LONGEST: usize = 6;

/// The names of HTML 2 to 4 for signs of ASCII and of Latin-1.
const WITHOUT_END: [&str; 70] = [
    "aacute", "acirc", "acute", "aelig", "agrave", "amp", "aring", "atilde", "auml", "brvbar", "ccedil", "cedil",
    "cent", "copy", "curren", "deg", "divide", "eacute", "ecirc", "egrave", "eth", "euml", "frac12", "frac14",
    "frac34", "gt", "iacute", "icirc", "iexcl", "igrave", "iquest", "iuml", "laquo", "lt", "macr", "micro", "middot",
    "nbsp", "not", "ntilde", "oacute", "ocirc", "ograve", "ordf", "ordm", "oslash", "otilde", "ouml", "para", "plusmn",
    "pound", "quot", "raquo", "reg", "sect", "shy", "sup1", "sup2", "sup3", "szlig", "thorn", "times", "uacute",
    "ucirc", "ugrave", "uml", "uuml", "yacute", "yen", "yuml",
];

const ASCII: [(&str, char); 38] = [
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("hat", '^'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("midast", '*'),
    ("nbsp", ' '),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("underbar", '_'),
    ("verbar", '|'),
    ("vert", '|'),
    ("verticalline", '|'),
];

/// Of HTML 4.01 (24), and the letters of Latin alphabets of HTML 5 (13.5).
const BEYOND_ASCII: [(&str, char); 171] = [
    ("aacute", '\u{e1}'),
    ("abreve", '\u{103}'),
    ("acirc", '\u{e2}'),
    ("acute", '\u{b4}'),
    ("aelig", '\u{e6}'),
    ("agrave", '\u{e0}'),
    ("alpha", '\u{3b1}'),
    ("amacr", '\u{101}'),
    ("aogon", '\u{105}'),
    ("aring", '\u{e5}'),
    ("atilde", '\u{e3}'),
    ("auml", '\u{e4}'),
    ("bdquo", '\u{201e}'),
    ("beta", '\u{3b2}'),
    ("brvbar", '\u{a6}'),
    ("bull", '\u{2022}'),
    ("cacute", '\u{107}'),
    ("ccaron", '\u{10d}'),
    ("ccedil", '\u{e7}'),
    ("ccirc", '\u{109}'),
    ("cdot", '\u{10b}'),
    ("cedil", '\u{b8}'),
    ("cent", '\u{a2}'),
    ("chi", '\u{3c7}'),
    ("circ", '\u{2c6}'),
    ("copy", '\u{a9}'),
    ("curren", '\u{a4}'),
    ("dagger", '\u{2020}'),
    ("dcaron", '\u{10f}'),
    ("deg", '\u{b0}'),
    ("delta", '\u{3b4}'),
    ("divide", '\u{f7}'),
    ("dstrok", '\u{111}'),
    ("eacute", '\u{e9}'),
    ("ecaron", '\u{11b}'),
    ("ecirc", '\u{ea}'),
    ("edot", '\u{117}'),
    ("egrave", '\u{e8}'),
    ("emacr", '\u{113}'),
    ("eng", '\u{14b}'),
    ("eogon", '\u{119}'),
    ("epsilon", '\u{3b5}'),
    ("eta", '\u{3b7}'),
    ("eth", '\u{f0}'),
    ("euml", '\u{eb}'),
    ("euro", '\u{20ac}'),
    ("fjlig", FJ),
    ("fnof", '\u{192}'),
    ("frac12", '\u{bd}'),
    ("frac14", '\u{bc}'),
    ("frac34", '\u{be}'),
    ("gamma", '\u{3b3}'),
    ("gbreve", '\u{11f}'),
    ("gcirc", '\u{11d}'),
    ("gdot", '\u{121}'),
    ("hcirc", '\u{125}'),
    ("hellip", '\u{2026}'),
    ("hstrok", '\u{127}'),
    ("iacute", '\u{ed}'),
    ("icirc", '\u{ee}'),
    ("iexcl", '\u{a1}'),
    ("igrave", '\u{ec}'),
    ("ijlig", '\u{133}'),
    ("imacr", '\u{12b}'),
    ("imath", '\u{131}'),
    ("inodot", '\u{131}'),
    ("iogon", '\u{12f}'),
    ("iota", '\u{3b9}'),
    ("iquest", '\u{bf}'),
    ("itilde", '\u{129}'),
    ("iuml", '\u{ef}'),
    ("jcirc", '\u{135}'),
    ("kappa", '\u{3ba}'),
    ("kcedil", '\u{137}'),
    ("kgreen", '\u{138}'),
    ("lacute", '\u{13a}'),
    ("lambda", '\u{3bb}'),
    ("laquo", '\u{ab}'),
    ("lcaron", '\u{13e}'),
    ("lcedil", '\u{13c}'),
    ("ldquo", '\u{201c}'),
    ("lmidot", '\u{140}'),
    ("lsaquo", '\u{2039}'),
    ("lsquo", '\u{2018}'),
    ("lstrok", '\u{142}'),
    ("macr", '\u{af}'),
    ("mdash", '\u{2014}'),
    ("micro", '\u{b5}'),
    ("middot", '\u{b7}'),
    ("mu", '\u{3bc}'),
    ("nacute", '\u{144}'),
    ("napos", '\u{149}'),
    ("ncaron", '\u{148}'),
    ("ncedil", '\u{146}'),
    ("ndash", '\u{2013}'),
    ("not", '\u{ac}'),
    ("ntilde", '\u{f1}'),
    ("nu", '\u{3bd}'),
    ("oacute", '\u{f3}'),
    ("ocirc", '\u{f4}'),
    ("odblac", '\u{151}'),
    ("oelig", '\u{153}'),
    ("ograve", '\u{f2}'),
    ("omacr", '\u{14d}'),
    ("omega", '\u{3c9}'),
    ("omicron", '\u{3bf}'),
    ("ordf", '\u{aa}'),
    ("ordm", '\u{ba}'),
    ("oslash", '\u{f8}'),
    ("otilde", '\u{f5}'),
    ("ouml", '\u{f6}'),
    ("para", '\u{b6}'),
    ("permil", '\u{2030}'),
    ("phi", '\u{3c6}'),
    ("pi", '\u{3c0}'),
    ("plusmn", '\u{b1}'),
    ("pound", '\u{a3}'),
    ("psi", '\u{3c8}'),
    ("racute", '\u{155}'),
    ("raquo", '\u{bb}'),
    ("rcaron", '\u{159}'),
    ("rcedil", '\u{157}'),
    ("rdquo", '\u{201d}'),
    ("reg", '\u{ae}'),
    ("rho", '\u{3c1}'),
    ("rsaquo", '\u{203a}'),
    ("rsquo", '\u{2019}'),
    ("sacute", '\u{15b}'),
    ("sbquo", '\u{201a}'),
    ("scaron", '\u{161}'),
    ("scedil", '\u{15f}'),
    ("scirc", '\u{15d}'),
    ("sect", '\u{a7}'),
    ("shy", '\u{ad}'),
    ("sigma", '\u{3c3}'),
    ("sigmaf", '\u{3c2}'),
    ("sup1", '\u{b9}'),
    ("sup2", '\u{b2}'),
    ("sup3", '\u{b3}'),
    ("szlig", '\u{df}'),
    ("tau", '\u{3c4}'),
    ("tcaron", '\u{165}'),
    ("tcedil", '\u{163}'),
    ("theta", '\u{3b8}'),
    ("thorn", '\u{fe}'),
    ("tilde", '\u{2dc}'),
    ("times", '\u{d7}'),
    ("trade", '\u{2122}'),
    ("tstrok", '\u{167}'),
    ("uacute", '\u{fa}'),
    ("ubreve", '\u{16d}'),
    ("ucirc", '\u{fb}'),
    ("udblac", '\u{171}'),
    ("ugrave", '\u{f9}'),
    ("umacr", '\u{16b}'),
    ("uml", '\u{a8}'),
    ("uogon", '\u{173}'),
    ("upsilon", '\u{3c5}'),
    ("uring", '\u{16f}'),
    ("utilde", '\u{169}'),
    ("uuml", '\u{fc}'),
    ("wcirc", '\u{175}'),
    ("xi", '\u{3be}'),
    ("yacute", '\u{fd}'),
    ("ycirc", '\u{177}'),
    ("yen", '\u{a5}'),
    ("yuml", '\u{ff}'),
    ("zacute", '\u{17a}'),
    ("zcaron", '\u{17e}'),
    ("zdot", '\u{17c}'),
    ("zeta", '\u{3b6}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_these_or_none() {
        let named = |name: &str| named(&name.chars().collect::<Vec<_>>());
        assert_eq!(
            ["amp", "szlig", "lstrok", "omega", "bsol", "am", "ampx"].map(named),
            [Some('&'), Some('\u{df}'), Some('\u{142}'), Some('\u{3c9}'), None, None, None]
        );
    }

    #[test]
    fn a_name_of_old_is_known_without_its_end() {
        let begun = |name: &str| begun(&name.chars().collect::<Vec<_>>());
        assert_eq!(
            ["ampx", "amp", "notin", "frac12x", "am", "xamp", "lstrokx", ""].map(begun),
            [Some(('&', 3)), Some(('&', 3)), Some(('\u{ac}', 3)), Some(('\u{bd}', 6)), None, None, None, None]
        );
        let all = WITHOUT_END.iter().map(|name| name.chars().collect::<Vec<_>>());
        assert!(all.into_iter().all(|name| named(&name).is_some() && name.len() <= LONGEST));
    }

    /// As who looks for them takes for granted.
    #[test]
    fn names_are_in_order() {
        assert!(WITHOUT_END.is_sorted() && [&ASCII[..], &BEYOND_ASCII].iter().all(|all| all.is_sorted()));
    }
}
