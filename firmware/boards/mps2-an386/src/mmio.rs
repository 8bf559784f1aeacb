//! Device registers: the one place where an address becomes a volatile access.

/// One 32-bit device register.
#[derive(Clone, Copy)]
pub(crate) struct Register(usize);

impl Register {
    /// # Safety
    ///
    /// `address` is that of a 32-bit register of a device on this board, and no access to the
    /// register can break memory safety (the device has no DMA).
    pub(crate) const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    pub(crate) fn read(self) -> u32 {
        // SAFETY: the address is a device register's, as `at` demands.
        unsafe { core::ptr::with_exposed_provenance::<u32>(self.0).read_volatile() }
    }

    pub(crate) fn write(self, value: u32) {
        // SAFETY: as in `read`.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(self.0).write_volatile(value) }
    }
}
