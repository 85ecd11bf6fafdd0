//! CUDA: the device's primary context, and a stream for each slot, so that copies of one overlap with kernels of another.
//!
//! The driver and NVRTC are looked for before they are called: `cudarc` panics where they are missing.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{NonNull, null_mut};
use std::slice;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUresult};
use cudarc::nvrtc;

use crate::Unavailable;
use crate::error::CUDA_MIN;
use crate::keys::{RECORD_LEN, Record};
use crate::runtime::{KERNELS, Launch, Lost, Runtime, SHARE_LEN, SOURCE, Sizes};

/// Threads of a block.
const GROUP: u32 = 64;
/// `CU_STREAM_NON_BLOCKING`: no order with the default stream.
const OWN_ORDER: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMES: u32 = 2;

fn check(call: &'static str, result: CUresult) -> Result<(), Lost> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let words = DriverError(result).error_string().map(|text| text.to_string_lossy().into_owned());
    Err(Lost { call, reason: words.unwrap_or_else(|_| format!("{result:?}")) })
}

fn driver(call: &'static str, result: CUresult) -> Result<(), Unavailable> {
    check(call, result).map_err(Unavailable::Driver)
}

/// The names of all devices.
pub fn devices() -> Result<Vec<String>, Unavailable> {
    // SAFETY: looks whether a library can be loaded; NVIDIA's has no requirements of who loads it.
    if !unsafe { sys::is_culib_present() } {
        return Err(Unavailable::NoCuda);
    }
    let (mut found, mut count) = (0, 0);
    // SAFETY: functions of a library that is there, which fill in what they are given, for all of this function.
    unsafe {
        driver("cuDriverGetVersion", sys::cuDriverGetVersion(&mut found))?;
        if found < CUDA_MIN {
            return Err(Unavailable::OldCuda { found });
        }
        match sys::cuInit(0) {
            CUresult::CUDA_ERROR_NO_DEVICE => return Err(Unavailable::NoCudaDevice),
            other => driver("cuInit", other)?,
        }
        driver("cuDeviceGetCount", sys::cuDeviceGetCount(&mut count))?;
    }
    if count == 0 { Err(Unavailable::NoCudaDevice) } else { (0..count).map(name).collect() }
}

fn name(index: i32) -> Result<String, Unavailable> {
    let (mut device, mut text) = (0, [0_u8; 128]);
    // SAFETY: a device that there is, and the room that it is told.
    unsafe {
        driver("cuDeviceGet", sys::cuDeviceGet(&mut device, index))?;
        let named = sys::cuDeviceGetName(text.as_mut_ptr().cast(), text.len() as i32, device);
        driver("cuDeviceGetName", named)?;
    }
    let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned());
    Ok(text.unwrap_or_default())
}

/// The kernels as PTX, for devices of this compute capability and later ones.
pub fn compile(capability: Option<(i32, i32)>) -> Result<Vec<u8>, Unavailable> {
    // SAFETY: as in `devices`.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return Err(Unavailable::NoCompiler);
    }
    let failed = |call: &'static str, error: nvrtc::result::NvrtcError| {
        Unavailable::Driver(Lost { call, reason: format!("{error:?}") })
    };
    let source = CString::new(SOURCE).expect("a text without zeros");
    let program = nvrtc::result::create_program(&source, Some(c"forebay.cu"))
        .map_err(|error| failed("nvrtcCreateProgram", error))?;
    let target = capability.map(|(major, minor)| format!("--gpu-architecture=compute_{major}{minor}"));
    let options: Vec<String> = target.into_iter().collect();
    // SAFETY: the program was created above and is destroyed once, below.
    let (built, log, text) = unsafe {
        let built = nvrtc::result::compile_program(program, &options);
        let log = nvrtc::result::get_program_log(program).unwrap_or_default();
        let text = nvrtc::result::get_ptx(program);
        let _ = nvrtc::result::destroy_program(program);
        (built, log, text)
    };
    let bytes = |text: Vec<std::ffi::c_char>| text.into_iter().map(|byte| byte as u8).collect::<Vec<u8>>();
    match built {
        Ok(()) => text.map(bytes).map_err(|error| failed("nvrtcGetPTX", error)),
        // A GPU that is newer than the compiler takes what is made for older ones.
        Err(_) if capability.is_some() => compile(None),
        Err(_) => {
            let log = String::from_utf8_lossy(&bytes(log)).trim_end_matches('\0').to_owned();
            Err(Unavailable::NotBuilt { device: "CUDA".to_owned(), log })
        }
    }
}

/// A device with its buffers. What is null or zero was not made yet.
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    module: sys::CUmodule,
    kernels: Vec<sys::CUfunction>,
    /// Key records are written in order, and without waiting for launches.
    key_stream: sys::CUstream,
    /// The last record was written.
    written: sys::CUevent,
    keys: Memory,
    slots: Vec<Slot>,
}

/// Of one launch at a time.
struct Slot {
    stream: sys::CUstream,
    done: sys::CUevent,
    input: Memory,
    output: Memory,
    shares: Memory,
    from: Pinned,
    to: Pinned,
    in_flight: bool,
}

/// Memory of the device.
#[derive(Clone, Copy)]
struct Memory {
    place: sys::CUdeviceptr,
    len: usize,
}

/// Host memory that the device can copy from and to by itself.
#[derive(Clone, Copy)]
struct Pinned {
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: CUDA's objects may be used by any thread that has made the context current, which every method does; the pinned
// memory is reached through its slot only.
unsafe impl Send for Cuda {}

fn allocate(len: usize) -> Result<Memory, Unavailable> {
    let mut place = 0;
    // SAFETY: fills in a place; the context is current.
    match unsafe { sys::cuMemAlloc_v2(&mut place, len.max(4)) } {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Unavailable::NoMemory { bytes: len }),
        other => driver("cuMemAlloc", other).map(|()| Memory { place, len }),
    }
}

fn pin(len: usize) -> Result<Pinned, Unavailable> {
    let mut place: *mut c_void = null_mut();
    // SAFETY: as above.
    driver("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut place, len, 0) })?;
    let bytes = NonNull::new(place.cast::<u8>()).ok_or(Unavailable::NoMemory { bytes: len })?;
    // SAFETY: as much was allocated. What CUDA gives is not initialised.
    unsafe { bytes.write_bytes(0, len) };
    Ok(Pinned { bytes, len })
}

fn stream() -> Result<sys::CUstream, Unavailable> {
    let mut stream = null_mut();
    // SAFETY: as above.
    driver("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, OWN_ORDER) })?;
    Ok(stream)
}

fn event() -> Result<sys::CUevent, Unavailable> {
    let mut event = null_mut();
    // SAFETY: as above.
    driver("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, NO_TIMES) })?;
    Ok(event)
}

impl Cuda {
    /// Opens a device by its index.
    pub fn open(index: usize, sizes: &Sizes) -> Result<Cuda, Unavailable> {
        let mut found = devices()?;
        if index >= found.len() {
            return Err(Unavailable::NoDevice { index, found });
        }
        let name = found.swap_remove(index);
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: a device that there is; its context is released when what follows is dropped.
        unsafe {
            driver("cuDeviceGet", sys::cuDeviceGet(&mut device, index as i32))?;
            driver("cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
        }
        let mut opened = Cuda {
            device,
            context,
            module: null_mut(),
            kernels: Vec::new(),
            key_stream: null_mut(),
            written: null_mut(),
            keys: Memory { place: 0, len: 0 },
            slots: Vec::new(),
        };
        opened.current().map_err(Unavailable::Driver)?;
        opened.load(&name)?;
        opened.key_stream = stream()?;
        opened.written = event()?;
        opened.keys = allocate(RECORD_LEN * sizes.records)?;
        for _ in 0..sizes.slots {
            opened.slots.push(Slot {
                stream: stream()?,
                done: event()?,
                input: allocate(sizes.input)?,
                output: allocate(sizes.output)?,
                shares: allocate(SHARE_LEN * sizes.chunks)?,
                from: pin(sizes.input)?,
                to: pin(sizes.output)?,
                in_flight: false,
            });
        }
        opened.wipe().map_err(Unavailable::Driver)?;
        Ok(opened)
    }

    /// Makes the context this thread's.
    fn current(&self) -> Result<(), Lost> {
        // SAFETY: retained as long as `self`.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn load(&mut self, name: &str) -> Result<(), Unavailable> {
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: a device that there is; fills in a number.
            let got = unsafe { sys::cuDeviceGetAttribute(&mut value, which, self.device) };
            driver("cuDeviceGetAttribute", got).map(|()| value)
        };
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let text = compile(Some((attribute(MAJOR)?, attribute(MINOR)?))).map_err(|error| match error {
            Unavailable::NotBuilt { log, .. } => Unavailable::NotBuilt { device: name.to_owned(), log },
            other => other,
        })?;
        // SAFETY: PTX, which ends with a zero; the module stays as long as its functions.
        driver("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut self.module, text.as_ptr().cast()) })?;
        for kernel in KERNELS {
            let (word, mut function) = (CString::new(kernel).expect("a word"), null_mut());
            // SAFETY: a text that ends with a zero, and a module that was loaded.
            let got = unsafe { sys::cuModuleGetFunction(&mut function, self.module, word.as_ptr()) };
            driver("cuModuleGetFunction", got)?;
            self.kernels.push(function);
        }
        Ok(())
    }

    fn run(&self, slot: &Slot, launch: &Launch, kernel: usize, count: u32) -> Result<(), Lost> {
        let Launch { mut jobs_at, mut chunks_at, mut tags_at, .. } = *launch;
        let mut places = [slot.input.place, slot.output.place, self.keys.place, slot.shares.place];
        let mut count = count;
        let numbers = [&mut jobs_at, &mut chunks_at, &mut tags_at, &mut count];
        let mut arguments: Vec<*mut c_void> =
            places.iter_mut().map(|place| (place as *mut sys::CUdeviceptr).cast()).collect();
        arguments.extend(numbers.into_iter().map(|number| (number as *mut u32).cast::<c_void>()));
        let blocks = count.div_ceil(GROUP).max(1);
        // SAFETY: the kernels' arguments are four places and four numbers, in this order, read before the call returns. The
        // kernels stay inside of the memory for what `pack` writes into the input.
        let launched = unsafe {
            let (all, none) = (arguments.as_mut_ptr(), null_mut());
            sys::cuLaunchKernel(self.kernels[kernel], blocks, 1, 1, GROUP, 1, 1, 0, slot.stream, all, none)
        };
        check("cuLaunchKernel", launched)
    }
}

impl Runtime for Cuda {
    fn input(&mut self, slot: usize) -> &mut [u8] {
        let slot = &mut self.slots[slot];
        assert!(!slot.in_flight, "the launch is in flight");
        // SAFETY: pinned and initialised as long as `self`, and no launch is in flight.
        unsafe { slice::from_raw_parts_mut(slot.from.bytes.as_ptr(), slot.from.len) }
    }

    fn output(&self, slot: usize) -> &[u8] {
        let slot = &self.slots[slot];
        assert!(!slot.in_flight, "the launch is in flight");
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(slot.to.bytes.as_ptr(), slot.to.len) }
    }

    fn launch(&mut self, index: usize, launch: &Launch) -> Result<(), Lost> {
        self.current()?;
        let slot = &mut self.slots[index];
        assert!(!slot.in_flight, "the launch is in flight");
        assert!(launch.input <= slot.from.len && launch.output <= slot.to.len, "more than the slot has");
        slot.in_flight = true;
        let slot = &self.slots[index];
        let (from, to) = (slot.from.bytes.as_ptr().cast(), slot.to.bytes.as_ptr().cast());
        // SAFETY: memory of these lengths at least, on both sides, which is left alone until the event.
        unsafe {
            check("cuStreamWaitEvent", sys::cuStreamWaitEvent(slot.stream, self.written, 0))?;
            let copied = sys::cuMemcpyHtoDAsync_v2(slot.input.place, from, launch.input, slot.stream);
            check("cuMemcpyHtoDAsync", copied)?;
            for (kernel, count) in launch.steps() {
                self.run(slot, launch, kernel, count)?;
            }
            let copied = sys::cuMemcpyDtoHAsync_v2(to, slot.output.place, launch.output, slot.stream);
            check("cuMemcpyDtoHAsync", copied)?;
            check("cuEventRecord", sys::cuEventRecord(slot.done, slot.stream))
        }
    }

    fn is_done(&mut self, index: usize) -> Result<bool, Lost> {
        if !self.slots[index].in_flight {
            return Ok(true);
        }
        self.current()?;
        let slot = &mut self.slots[index];
        // SAFETY: an event that was recorded.
        match unsafe { sys::cuEventQuery(slot.done) } {
            CUresult::CUDA_ERROR_NOT_READY => return Ok(false),
            other => check("cuEventQuery", other)?,
        }
        slot.in_flight = false;
        Ok(true)
    }

    fn write_record(&mut self, number: u32, record: Record) -> Result<(), Lost> {
        self.current()?;
        let at = RECORD_LEN * number as usize;
        assert!(at + RECORD_LEN <= self.keys.len, "a record that there is");
        let to = self.keys.place + at as u64;
        // SAFETY: inside of the memory. From memory that is not pinned the driver copies before it returns.
        unsafe {
            let copied = sys::cuMemcpyHtoDAsync_v2(to, record.as_ptr().cast(), RECORD_LEN, self.key_stream);
            check("cuMemcpyHtoDAsync", copied)?;
            check("cuEventRecord", sys::cuEventRecord(self.written, self.key_stream))
        }
    }

    fn writing(&mut self) -> usize {
        0
    }

    fn wipe(&mut self) -> Result<(), Lost> {
        self.current()?;
        for memory in self.slots.iter().map(|slot| slot.shares).chain([self.keys]) {
            // SAFETY: the whole of it, which no launch in flight uses.
            let set = unsafe { sys::cuMemsetD8Async(memory.place, 0, memory.len, self.key_stream) };
            check("cuMemsetD8Async", set)?;
        }
        // SAFETY: a stream that there is, for both.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.written, self.key_stream) })?;
        // SAFETY: as above.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.key_stream) })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.current().is_err() {
            return;
        }
        let free = |memory: Memory| {
            if memory.place != 0 {
                // SAFETY: allocated once and not used any more.
                let _ = unsafe { sys::cuMemFree_v2(memory.place) };
            }
        };
        for slot in &self.slots {
            [slot.input, slot.output, slot.shares].into_iter().for_each(free);
            // SAFETY: made once and not used any more; no launch is in flight.
            unsafe {
                let _ = sys::cuMemFreeHost(slot.from.bytes.as_ptr().cast());
                let _ = sys::cuMemFreeHost(slot.to.bytes.as_ptr().cast());
                let _ = sys::cuEventDestroy_v2(slot.done);
                let _ = sys::cuStreamDestroy_v2(slot.stream);
            }
        }
        free(self.keys);
        // SAFETY: as above, what there is of them; the context is released once for the one time that it was retained.
        unsafe {
            if !self.written.is_null() {
                let _ = sys::cuEventDestroy_v2(self.written);
            }
            if !self.key_stream.is_null() {
                let _ = sys::cuStreamDestroy_v2(self.key_stream);
            }
            if !self.module.is_null() {
                let _ = sys::cuModuleUnload(self.module);
            }
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_of_cuda_takes_the_kernels_where_it_is_installed() {
        match compile(Some((8, 0))) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                KERNELS
                    .iter()
                    .for_each(|kernel| assert!(text.contains(&format!(".entry {kernel}")), "{kernel}"));
            }
            Err(Unavailable::NoCompiler) => println!("skipped: {}", Unavailable::NoCompiler),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_machine_without_cuda_says_so() {
        match devices() {
            Ok(found) => assert!(!found.is_empty()),
            Err(error) => assert_ne!(error.help(), "", "{error}"),
        }
    }
}
