//! The allocator and the panic handler of the wasms of the npm package, as macros: in a crate of their own they would not
//! be inlined, and add 0.3 kB to a page.

#![no_std]

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use talc;

/// Defines the allocator and the panic handler of a wasm.
#[macro_export]
macro_rules! platform {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::talc::wasm::WasmDynamicTalc = $crate::talc::wasm::new_wasm_dynamic_allocator();

        /// A panic is a trap: JavaScript then goes on with a new instance.
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            core::arch::wasm32::unreachable()
        }
    };
}

/// Defines `grow_ahead`, which grows the memory further if an operation has made it grow. Engines collect all garbage
/// whenever it grows, and the allocator alone would grow it page by page.
#[macro_export]
macro_rules! grow_ahead {
    () => {
        const PAGE: usize = 1 << 16;

        /// The share of the memory that is grown ahead: an eighth.
        const AHEAD: usize = 8;

        static PAGES: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

        /// Grows the memory further if an operation has made it grow.
        #[inline(always)]
        pub(crate) fn grow_ahead() {
            if core::arch::wasm32::memory_size::<0>() != PAGES.load(core::sync::atomic::Ordering::Relaxed) {
                grow_by_share();
            }
        }

        #[cold]
        #[inline(never)]
        fn grow_by_share() {
            let mut room = alloc::vec::Vec::<u8>::new();
            let pages = core::arch::wasm32::memory_size::<0>;
            // The allocator keeps the freed memory. If there is no memory, nothing can be prepared.
            let _ = room.try_reserve_exact(pages() / AHEAD * PAGE);
            core::hint::black_box(&room);
            drop(room);
            PAGES.store(pages(), core::sync::atomic::Ordering::Relaxed);
        }
    };
}
