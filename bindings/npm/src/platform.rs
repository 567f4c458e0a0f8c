//! The allocator and the panic handler of the wasm.

use alloc::vec::Vec;
use core::arch::wasm32::memory_size;
use core::hint::black_box;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use talc::wasm::{WasmDynamicTalc, new_wasm_dynamic_allocator};

const PAGE: usize = 1 << 16;

#[global_allocator]
static ALLOCATOR: WasmDynamicTalc = new_wasm_dynamic_allocator();

/// A panic is a trap: JavaScript then goes on with a new instance.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// The share of the memory that is grown ahead: an eighth.
const AHEAD: usize = 8;

static PAGES: AtomicUsize = AtomicUsize::new(0);

/// Grows the memory further if an operation has made it grow. Engines collect all garbage whenever it grows, and the
/// allocator alone would grow it page by page.
#[inline(always)]
pub(crate) fn grow_ahead() {
    if memory_size::<0>() != PAGES.load(Relaxed) {
        grow_by_share();
    }
}

#[cold]
#[inline(never)]
fn grow_by_share() {
    let mut room = Vec::<u8>::new();
    // The allocator keeps the freed memory. If there is no memory, nothing can be prepared.
    let _ = room.try_reserve_exact(memory_size::<0>() / AHEAD * PAGE);
    black_box(&room);
    drop(room);
    PAGES.store(memory_size::<0>(), Relaxed);
}
