//! The allocator and the panic handler. Every call starts with an empty heap, so that allocating is only counting up.

#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::{memory_grow, memory_size, unreachable};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PAGE: usize = 1 << 16;

unsafe extern "C" {
    /// The linker's symbol for where the heap begins.
    static __heap_base: u8;
}

/// Where the free memory begins; 0 before the first allocation.
static TOP: AtomicUsize = AtomicUsize::new(0);

struct Bump;

#[global_allocator]
static ALLOCATOR: Bump = Bump;

/// Frees all memory.
pub(crate) fn free_all() {
    TOP.store((&raw const __heap_base).addr(), Relaxed);
}

// SAFETY: a block is between the old and the new top, which only `free_all` moves back, when no block is in use; the top is
// within the memory.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(start) = TOP.load(Relaxed).checked_next_multiple_of(layout.align()) else {
            return core::ptr::null_mut();
        };
        match start.checked_add(layout.size()) {
            Some(end) if reaches(end) => {
                TOP.store(end, Relaxed);
                core::ptr::with_exposed_provenance_mut(start)
            }
            _ => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// Grows the memory to an end. Returns false if that is not possible.
fn reaches(end: usize) -> bool {
    let missing = end.div_ceil(PAGE).saturating_sub(memory_size::<0>());
    missing == 0 || memory_grow::<0>(missing) != usize::MAX
}

/// A panic is a trap: JavaScript then goes on with a new instance.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unreachable()
}
