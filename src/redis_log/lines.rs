//! What a key's states know of its past: which entries, also if Redis lost the key and a process restored it.
//!
//! A line of entries begins where the key is created or restored. The process that restores a key may know less than
//! another one that returns later. So the states carry, for each line, how many of its entries they know and what these
//! charged. A process that knows more of a former line keeps its own states, and charges on top what later lines charged.

use alloc::string::String;
use alloc::vec::Vec;

use super::ReplayError;
use super::entry::{push_stamp, read_stamp};
use super::text::{Cursor, push_number};
use crate::growth::{OutOfMemory, push};
use crate::policy::costs::PositionCosts;

/// How many former lines are kept.
const MAX_FORMER: usize = 8;

/// What entries charged: an amount under every policy, and more under the policies at some positions. Both are at least
/// what was charged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Charged {
    all: u64,
    each: Vec<u64>,
}

impl Charged {
    pub(super) fn add(&mut self, costs: &PositionCosts, policies: usize) -> Result<(), OutOfMemory> {
        match costs {
            PositionCosts::All(cost) => self.all = self.all.saturating_add(*cost),
            PositionCosts::Each(_) => {
                for position in 0..policies {
                    self.add_at(position, costs.at(position))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn add_at(&mut self, position: usize, cost: u64) -> Result<(), OutOfMemory> {
        while self.each.len() <= position {
            push(&mut self.each, 0)?;
        }
        self.each[position] = self.each[position].saturating_add(cost);
        Ok(())
    }

    /// Returns what was charged under the policy at a position.
    pub(super) fn at(&self, position: usize) -> u64 {
        self.all.saturating_add(self.each.get(position).copied().unwrap_or(0))
    }

    /// Forgets which policies were charged, since others take their positions.
    fn level(&mut self) {
        self.all = self.at_most();
        self.each.clear();
    }

    fn at_most(&self) -> u64 {
        self.all.saturating_add(self.each.iter().copied().max().unwrap_or(0))
    }

    /// Adds what `other` charged beyond `known`.
    fn add_beyond(&mut self, other: &Self, known: &Self) -> Result<(), OutOfMemory> {
        self.all = self.all.saturating_add(other.all.saturating_sub(known.all));
        for position in 0..other.each.len() {
            let (more, less) = (other.each[position], known.each.get(position).copied().unwrap_or(0));
            self.add_at(position, more.saturating_sub(less))?;
        }
        Ok(())
    }
}

/// A line, as far as its entries are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    /// When it began, which identifies it.
    start: u64,
    /// How many of its entries are known.
    entries: u64,
    charged: Charged,
}

/// The lines of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    current: Line,
    /// The lines before, the latest last.
    former: Vec<Line>,
    /// The time of the last reset, which ended all that was charged before it; 0 if there was none.
    wiped_at: u64,
}

impl Lines {
    pub(super) fn new(start: u64) -> Self {
        Self { current: Line { start, ..Line::default() }, ..Self::default() }
    }

    /// Returns what the current line has charged, to add to it.
    pub(super) fn charged(&mut self) -> &mut Charged {
        &mut self.current.charged
    }

    /// Returns when the current line began.
    pub(super) fn start(&self) -> u64 {
        self.current.start
    }

    /// Counts an entry.
    pub(super) fn count(&mut self) {
        self.current.entries += 1;
    }

    /// Records that the states were reset at a time.
    pub(super) fn wipe(&mut self, now: u64) {
        self.wiped_at = now;
        self.current.charged = Charged::default();
    }

    /// Forgets which policies were charged, since others take their positions.
    pub(super) fn level(&mut self) {
        self.current.charged.level();
        for line in &mut self.former {
            line.charged.level();
        }
    }

    /// Returns the lines of states that are written back as the beginning of a new line, whose start is not known yet.
    pub(super) fn restored(&self) -> Result<Self, OutOfMemory> {
        let mut former = self.former.clone();
        push(&mut former, self.current.clone())?;
        former.drain(..former.len().saturating_sub(MAX_FORMER));
        Ok(Self { former, wiped_at: self.wiped_at, ..Self::default() })
    }

    fn all(&self) -> impl Iterator<Item = &Line> {
        self.former.iter().chain([&self.current])
    }

    /// Returns whether these lines, of states that know everything up to `stamp`, know of entries that `value` does not.
    pub(super) fn know_more_than(&self, value: &Self, stamp: u64) -> bool {
        stamp > value.wiped_at
            && self.all().any(|own| {
                // The entries of the line in force are in the value.
                own.start != value.current.start
                    && value
                        .former
                        .iter()
                        .find(|line| line.start == own.start)
                        .is_none_or(|line| own.entries > line.entries)
            })
    }

    /// Adds what only `value` knows, and returns what was charged by it.
    pub(super) fn join(&mut self, value: &Self) -> Result<Charged, OutOfMemory> {
        let mut charged = Charged::default();
        let none = Charged::default();
        let mut former: Vec<Line> = Vec::new();
        for line in self.all().filter(|line| line.start != value.current.start) {
            push(&mut former, line.clone())?;
        }
        for line in &value.former {
            match former.iter_mut().find(|own| own.start == line.start) {
                Some(own) if own.entries >= line.entries => {}
                Some(own) => {
                    charged.add_beyond(&line.charged, &own.charged)?;
                    *own = line.clone();
                }
                None => {
                    charged.add_beyond(&line.charged, &none)?;
                    push(&mut former, line.clone())?;
                }
            }
        }
        let known = self.all().find(|line| line.start == value.current.start);
        charged.add_beyond(&value.current.charged, known.map_or(&none, |line| &line.charged))?;
        former.sort_by_key(|line| line.start);
        former.drain(..former.len().saturating_sub(MAX_FORMER));
        *self = Self { current: value.current.clone(), former, wiped_at: self.wiped_at.max(value.wiped_at) };
        Ok(charged)
    }

    /// Appends the lines, except for the start of the current one.
    pub(super) fn push_to(&self, text: &mut String) {
        push_line(text, &self.current);
        for line in self.former.iter().rev() {
            text.push(';');
            push_stamp(text, line.start);
            push_line(text, line);
        }
        if self.wiped_at > 0 {
            text.push('-');
            push_stamp(text, self.wiped_at);
        }
    }

    /// Reads lines of which the current one began at `start`.
    pub(super) fn read(cursor: &mut Cursor<'_>, start: u64) -> Result<Self, ReplayError> {
        let mut lines = Self { current: read_line(cursor, start)?, ..Self::default() };
        while cursor.take(b';') {
            let start = read_stamp(cursor)?;
            push(&mut lines.former, read_line(cursor, start)?)?;
        }
        lines.former.reverse();
        if cursor.take(b'-') {
            lines.wiped_at = read_stamp(cursor)?;
        }
        Ok(lines)
    }
}

fn push_line(text: &mut String, line: &Line) {
    push_number(text, line.entries as i64);
    for amount in [line.charged.all].iter().chain(&line.charged.each) {
        text.push(',');
        push_number(text, (*amount).min(i64::MAX as u64) as i64);
    }
}

fn read_line(cursor: &mut Cursor<'_>, start: u64) -> Result<Line, ReplayError> {
    let number = |cursor: &mut Cursor<'_>| u64::try_from(cursor.number()?).map_err(|_| ReplayError::Malformed);
    let entries = number(cursor)?;
    cursor.expect(b',')?;
    let mut charged = Charged { all: number(cursor)?, each: Vec::new() };
    while cursor.take(b',') {
        push(&mut charged.each, number(cursor)?)?;
    }
    Ok(Line { start, entries, charged })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn lines(start: u64, hits: u64) -> Lines {
        let mut lines = Lines::new(start);
        hit(&mut lines, hits);
        lines
    }

    fn hit(lines: &mut Lines, hits: u64) {
        for _ in 0..hits {
            lines.count();
            lines.charged().add(&PositionCosts::All(2), 1).unwrap();
        }
    }

    /// Returns the lines of a value that was restored by a process with these lines.
    fn restored(by: &Lines, start: u64) -> Lines {
        let mut lines = by.restored().unwrap();
        lines.current.start = start;
        lines
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let mut several = restored(&restored(&lines(5, 3), 70), 900);
        several.wipe(80);
        several.charged().add_at(2, 7).unwrap();
        for written in [Lines::new(7), lines(1_800_000_000_000, 40), several] {
            let mut text = String::new();
            written.push_to(&mut text);
            assert_eq!(Lines::read(&mut Cursor::new(&text), written.current.start), Ok(written), "{text}");
        }
    }

    #[test]
    fn whoever_knows_more_keeps_it_and_adds_what_came_since() {
        let (mut much, little) = (lines(10, 80), lines(10, 50));
        let mut value = restored(&little, 100);
        assert!(!little.know_more_than(&value, 99));
        hit(&mut value, 5);
        assert!(much.know_more_than(&value, 99));
        assert_eq!(much.join(&value).unwrap().at(0), 10);
        // What was joined is not charged again.
        hit(&mut value, 3);
        assert_eq!(much.join(&value).unwrap().at(0), 6);
        assert_eq!((much.former.len(), much.former[0].entries, much.current.entries), (1, 80, 8));
    }

    #[test]
    fn several_losses_in_a_row_add_up() {
        let mut quiet = lines(10, 90);
        let mut first = restored(&lines(10, 20), 100);
        hit(&mut first, 4);
        let mut second = restored(&first, 200);
        hit(&mut second, 3);
        let mut third = restored(&second, 300);
        hit(&mut third, 2);
        assert!(quiet.know_more_than(&third, 50));
        assert_eq!(quiet.join(&third).unwrap().at(0), 2 * (4 + 3 + 2));
        assert!(!third.know_more_than(&quiet, 300));
    }

    #[test]
    fn a_value_that_was_created_anew_knows_nothing() {
        let mut known = lines(10, 9);
        let value = lines(100, 1);
        assert!(known.know_more_than(&value, 99));
        assert_eq!(known.join(&value).unwrap(), Charged { all: 2, each: vec![] });
        let mut reset = value;
        reset.wipe(150);
        assert!(!lines(10, 9).know_more_than(&reset, 99));
    }
}
