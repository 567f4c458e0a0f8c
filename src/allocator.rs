//! Memory for the wasm of the npm package, in a few hundred bytes: a list of free blocks for each length, which are the
//! powers of two and those halfway between them.
//!
//! Rust says how long what it gives back is, so blocks need no headers; and what the core holds
//! most of (chunks of slots of two or three words, logs) is so long anyway.

#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::memory_grow;
use core::cell::UnsafeCell;
use core::ptr::null_mut;

const PAGE: usize = 1 << 16;
/// The shortest block, 16 bytes, is as long as anything here needs to be aligned to.
const SHORTEST: u32 = 4;
/// The last is 2 GiB long, past which Rust does not ask.
const CLASSES: usize = 54;

#[global_allocator]
static ALLOCATOR: Blocks = Blocks(UnsafeCell::new(Free { lists: [null_mut(); CLASSES], unused: 0, end: 0 }));

struct Blocks(UnsafeCell<Free>);

struct Free {
    /// For each class the first free block.
    lists: [*mut Link; CLASSES],
    /// Memory from here to `end` was never used.
    unused: usize,
    end: usize,
}

/// A free block holds the address of the next one of its class.
struct Link(*mut Link);

// SAFETY: there is one thread.
unsafe impl Sync for Blocks {}

// SAFETY: a block is in one list or in use, never both: `alloc` unlinks it, `dealloc` links it. Each is as long as its
// class says and aligned to the shortest length; a layout that asks for more is refused.
unsafe impl GlobalAlloc for Blocks {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread, and nothing in here allocates.
        let free = unsafe { &mut *self.0.get() };
        let (class, bytes) = class(layout);
        match free.lists.get_mut(class) {
            Some(_) if layout.align() > 1 << SHORTEST => null_mut(),
            Some(list) if list.is_null() => free.cut(bytes),
            Some(list) => {
                let block = *list;
                // SAFETY: what a list names is a free block, which holds the next.
                *list = unsafe { (*block).0 };
                block.cast()
            }
            None => null_mut(),
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        let free = unsafe { &mut *self.0.get() };
        if let Some(list) = free.lists.get_mut(class(layout).0) {
            let block = block.cast::<Link>();
            // SAFETY: the block came from `alloc`, so it is long enough and aligned, and nobody uses it any more.
            unsafe { block.write(Link(*list)) };
            *list = block;
        }
    }
}

/// The class of the shortest blocks that are long enough, and how long those are.
fn class(layout: Layout) -> (usize, usize) {
    let last = layout.size().saturating_sub(1) >> SHORTEST;
    // A length is 1 to 4 times a power of two, from 3 on of ever larger ones.
    let power = (last | 2).ilog2() - 1;
    let times = last >> power;
    (2 * power as usize + times, (times + 1) << power << SHORTEST)
}

impl Free {
    /// A block of memory that was never used; null when there is no more.
    fn cut(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.end.wrapping_sub(self.unused) {
            let before = memory_grow(0, bytes.div_ceil(PAGE));
            if before == usize::MAX {
                return null_mut();
            }
            if before * PAGE != self.end {
                self.unused = before * PAGE;
                self.end = self.unused;
            }
            // The last page ends where the addresses begin again.
            self.end = self.end.wrapping_add(bytes.next_multiple_of(PAGE));
        }
        let block = self.unused;
        self.unused += bytes;
        block as *mut u8
    }
}

/// A panic is a trap: nothing here can panic, and saying where it did would outweigh the core.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
