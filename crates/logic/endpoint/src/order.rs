//! One order out of several lists of mirrors.

/// Joins lists into one that keeps each list's order where that is possible: (B, C) and (A, B) give (A, B, C). Where
/// the lists contradict each other, the one that came first wins. OpenShift joins the rules of several objects for one
/// source this way.
pub(crate) fn merged<'a>(lists: &[&'a [String]]) -> Vec<&'a str> {
    let mut waiting: Vec<&'a str> = Vec::new();
    for item in lists.iter().flat_map(|list| list.iter()) {
        if !waiting.contains(&item.as_str()) {
            waiting.push(item);
        }
    }
    let mut result = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let free = |item: &str| {
            lists.iter().all(|list| {
                list.iter().take_while(|other| *other != item).all(|before| result.contains(&before.as_str()))
                    || !list.iter().any(|other| other == item)
            })
        };
        let next = waiting.iter().position(|item| free(item)).unwrap_or(0);
        result.push(waiting.remove(next));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_orders() {
        let check = |lists: &[&str], expected: &str| {
            let lists: Vec<Vec<String>> =
                lists.iter().map(|list| list.split_whitespace().map(str::to_owned).collect()).collect();
            let lists: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
            assert_eq!(merged(&lists).join(" "), expected);
        };
        check(&["B C", "A B"], "A B C");
        check(&["A B", "B C"], "A B C");
        check(&["A", "B"], "A B");
        check(&["A B", "B A"], "A B");
        check(&["A A B"], "A B");
        check(&[], "");
        check(&["X", "A B", "B X"], "A B X");
    }
}
