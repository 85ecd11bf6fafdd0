//! OpenCL: a context, and a queue for each slot, so that copies of one overlap with kernels of another.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::{NonNull, null, null_mut};
use std::slice;
use std::sync::{Mutex, PoisonError};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::{ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_event};

use crate::Unavailable;
use crate::keys::{RECORD_LEN, Record};
use crate::runtime::{KERNELS, Launch, Lost, Runtime, SHARE_LEN, SOURCE, Sizes};

/// Work-items of a group. On a CPU a group is one thread's, so that small ones spread small batches.
const GROUP_OF_CPU: usize = 4;
const GROUP_OF_GPU: usize = 64;
/// Status of an event whose command has ended (`CL_COMPLETE`); negative ones are errors.
const COMPLETE: i32 = 0;
/// What OpenCL's loader answers where no driver is registered (`CL_PLATFORM_NOT_FOUND_KHR`).
const PLATFORM_NOT_FOUND: i32 = -1001;

/// Drivers of OpenCL find their devices at the first call, and not all bear two first calls at a time: pocl 3.1 then answers that
/// there is no device.
static FIRST_CALL: Mutex<()> = Mutex::new(());

/// All devices of all platforms, with the names of both.
pub fn devices() -> Result<Vec<(Device, String)>, Unavailable> {
    let _one = FIRST_CALL.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(|error| match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => Unavailable::NoOpenCl,
        PLATFORM_NOT_FOUND => Unavailable::NoOpenClDevice,
        _ => driver("clGetPlatformIDs")(error),
    })?;
    let mut all = Vec::new();
    for platform in platforms {
        let of = platform.name().unwrap_or_default();
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            let name = device.name().unwrap_or_default();
            all.push((device, format!("{} ({})", name.trim(), of.trim())));
        }
    }
    if all.is_empty() { Err(Unavailable::NoOpenClDevice) } else { Ok(all) }
}

fn driver(call: &'static str) -> impl Fn(ClError) -> Unavailable {
    move |error| Unavailable::Driver(lost(call)(error))
}

fn lost(call: &'static str) -> impl Fn(ClError) -> Lost {
    move |error| Lost { call, reason: error.to_string() }
}

/// A device with its buffers.
pub struct OpenCl {
    group: usize,
    /// Key records are written in order, and without waiting for launches.
    key_queue: CommandQueue,
    keys: Buffer<u8>,
    /// Records that are being written: OpenCL reads them until the event.
    writing: VecDeque<(Event, Box<Record>)>,
    kernels: Vec<Kernel>,
    slots: Vec<Slot>,
    /// The program and context of all of it.
    _program: Program,
    _context: Context,
}

/// Of one launch at a time.
struct Slot {
    queue: CommandQueue,
    input: Buffer<u8>,
    output: Buffer<u8>,
    shares: Buffer<u8>,
    from: Pinned,
    to: Pinned,
    /// The copy back, when a launch is in flight.
    done: Option<Event>,
}

/// Host memory that the driver can copy from and to by itself.
struct Pinned {
    buffer: Buffer<u8>,
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: OpenCL's objects may be used by any thread, one at a time each (the specification's appendix A.2), and the pinned
// memory is reached through its slot only.
unsafe impl Send for OpenCl {}

fn buffer(context: &Context, len: usize, flags: u64) -> Result<Buffer<u8>, Unavailable> {
    // SAFETY: no memory of the host is given.
    let made = unsafe { Buffer::create(context, CL_MEM_READ_WRITE | flags, len.max(4), null_mut()) };
    made.map_err(|_| Unavailable::NoMemory { bytes: len })
}

impl Pinned {
    fn new(context: &Context, queue: &CommandQueue, len: usize) -> Result<Pinned, Unavailable> {
        let buffer = buffer(context, len, CL_MEM_ALLOC_HOST_PTR)?;
        let (mut place, flags) = (null_mut::<c_void>(), CL_MAP_READ | CL_MAP_WRITE);
        // SAFETY: the whole of a buffer that stays as long as the mapping.
        let mapped =
            unsafe { queue.enqueue_map_buffer(&buffer, CL_BLOCKING, flags, 0, len, &mut place, &[]) };
        mapped.map_err(driver("clEnqueueMapBuffer"))?;
        let bytes = NonNull::new(place.cast::<u8>()).ok_or(Unavailable::NoMemory { bytes: len })?;
        // SAFETY: as much was mapped. What OpenCL gives is not initialised.
        unsafe { bytes.write_bytes(0, len) };
        Ok(Pinned { buffer, bytes, len })
    }

    /// Not while a command reads or writes it.
    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and initialised since `new`; the caller's slot has no launch in flight.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }

    fn unmap(&self, queue: &CommandQueue) {
        let place = self.bytes.as_ptr().cast::<c_void>();
        // SAFETY: mapped in `new`, and not used after this.
        let _ = unsafe { queue.enqueue_unmap_mem_object(self.buffer.get(), place, &[]) };
    }
}

impl OpenCl {
    /// Opens a device by its index among all.
    pub fn open(index: usize, sizes: &Sizes) -> Result<OpenCl, Unavailable> {
        let mut all = devices()?;
        if index >= all.len() {
            let found = all.into_iter().map(|(_, name)| name).collect();
            return Err(Unavailable::NoDevice { index, found });
        }
        let (device, name) = all.swap_remove(index);
        let context = Context::from_device(&device).map_err(driver("clCreateContext"))?;
        let program = Program::create_and_build_from_source(&context, SOURCE, "-cl-std=CL1.2");
        let program = program.map_err(|log| Unavailable::NotBuilt { device: name.clone(), log })?;
        let kernels = KERNELS.iter().map(|kernel| Kernel::create(&program, kernel));
        let kernels = kernels.collect::<Result<Vec<_>, _>>().map_err(driver("clCreateKernel"))?;
        let queue = || {
            #[allow(deprecated, reason = "OpenCL 1.2 has no other")]
            CommandQueue::create_default(&context, 0).map_err(driver("clCreateCommandQueue"))
        };
        let slot = |_| {
            let queue = queue()?;
            Ok(Slot {
                input: buffer(&context, sizes.input, 0)?,
                output: buffer(&context, sizes.output, 0)?,
                shares: buffer(&context, SHARE_LEN * sizes.chunks, 0)?,
                from: Pinned::new(&context, &queue, sizes.input)?,
                to: Pinned::new(&context, &queue, sizes.output)?,
                done: None,
                queue,
            })
        };
        let is_cpu = device.dev_type().is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0);
        let group = if is_cpu { GROUP_OF_CPU } else { GROUP_OF_GPU };
        let most = device.max_work_group_size().unwrap_or(group);
        let mut opened = OpenCl {
            group: group.min(most),
            key_queue: queue()?,
            keys: buffer(&context, RECORD_LEN * sizes.records, 0)?,
            writing: VecDeque::new(),
            kernels,
            slots: (0..sizes.slots).map(slot).collect::<Result<_, Unavailable>>()?,
            _program: program,
            _context: context,
        };
        opened.warm_up().map_err(Unavailable::Driver)?;
        Ok(opened)
    }

    /// Runs each kernel without jobs: drivers compile some of it at the first use.
    fn warm_up(&mut self) -> Result<(), Lost> {
        let all = (1 << KERNELS.len()) - 1;
        self.launch(0, &Launch { input: 4, output: 4, kernels: all, ..Launch::default() })?;
        self.slots[0].queue.finish().map_err(lost("clFinish"))?;
        self.slots[0].done = None;
        self.wipe()
    }

    fn run(&self, slot: &Slot, launch: &Launch, kernel: usize, count: u32) -> Result<(), ClError> {
        let Launch { jobs_at, chunks_at, tags_at, .. } = *launch;
        let code = &self.kernels[kernel];
        let buffers = [&slot.input, &slot.output, &self.keys, &slot.shares];
        let size = (count as usize).max(1).next_multiple_of(self.group);
        // SAFETY: the kernels' arguments are four buffers and four numbers, in this order, and there is one dimension. The
        // kernels stay inside of the buffers for what `pack` writes into the input.
        unsafe {
            for (at, buffer) in buffers.into_iter().enumerate() {
                code.set_arg(at as u32, &buffer.get())?;
            }
            for (at, number) in [jobs_at, chunks_at, tags_at, count].iter().enumerate() {
                code.set_arg(4 + at as u32, number)?;
            }
            slot.queue.enqueue_nd_range_kernel(code.get(), 1, null(), &size, &self.group, &[])?;
        }
        Ok(())
    }

    /// Drops the records that have been written.
    fn reap(&mut self) -> Result<(), Lost> {
        while let Some((event, _)) = self.writing.front() {
            if !is_complete(event)? {
                break;
            }
            self.writing.pop_front();
        }
        Ok(())
    }
}

fn is_complete(event: &Event) -> Result<bool, Lost> {
    let status = event.command_execution_status().map_err(lost("clGetEventInfo"))?;
    match status.0 {
        COMPLETE => Ok(true),
        error if error < 0 => Err(lost("a command")(ClError(error))),
        _ => Ok(false),
    }
}

impl Runtime for OpenCl {
    fn input(&mut self, slot: usize) -> &mut [u8] {
        let slot = &mut self.slots[slot];
        assert!(slot.done.is_none(), "the launch is in flight");
        slot.from.bytes_mut()
    }

    fn output(&self, slot: usize) -> &[u8] {
        let slot = &self.slots[slot];
        assert!(slot.done.is_none(), "the launch is in flight");
        slot.to.bytes()
    }

    fn launch(&mut self, index: usize, launch: &Launch) -> Result<(), Lost> {
        let slot = &mut self.slots[index];
        assert!(slot.done.is_none(), "the launch is in flight");
        let after: Vec<cl_event> = self.writing.back().map(|(event, _)| event.get()).into_iter().collect();
        let given = &slot.from.bytes()[..launch.input];
        // SAFETY: a part of the slot's pinned memory, as long as the buffer or shorter, which is left alone until `done`.
        let copied =
            unsafe { slot.queue.enqueue_write_buffer(&mut slot.input, CL_NON_BLOCKING, 0, given, &after) };
        copied.map_err(lost("clEnqueueWriteBuffer"))?;
        let slot = &self.slots[index];
        for (kernel, count) in launch.steps() {
            self.run(slot, launch, kernel, count).map_err(lost("clEnqueueNDRangeKernel"))?;
        }
        let slot = &mut self.slots[index];
        let room = &mut slot.to.bytes_mut()[..launch.output];
        // SAFETY: as above.
        let room = unsafe { slice::from_raw_parts_mut(room.as_mut_ptr(), room.len()) };
        // SAFETY: as above.
        let done = unsafe { slot.queue.enqueue_read_buffer(&slot.output, CL_NON_BLOCKING, 0, room, &[]) };
        slot.done = Some(done.map_err(lost("clEnqueueReadBuffer"))?);
        slot.queue.flush().map_err(lost("clFlush"))
    }

    fn is_done(&mut self, slot: usize) -> Result<bool, Lost> {
        let slot = &mut self.slots[slot];
        let Some(event) = &slot.done else { return Ok(true) };
        let is_done = is_complete(event)?;
        if is_done {
            slot.done = None;
        }
        Ok(is_done)
    }

    fn write_record(&mut self, number: u32, record: Record) -> Result<(), Lost> {
        self.reap()?;
        let (record, at) = (Box::new(record), RECORD_LEN * number as usize);
        // SAFETY: inside of the buffer; the record stays where it is until the event.
        let written = unsafe {
            self.key_queue.enqueue_write_buffer(&mut self.keys, CL_NON_BLOCKING, at, &record[..], &[])
        };
        self.writing.push_back((written.map_err(lost("clEnqueueWriteBuffer"))?, record));
        self.key_queue.flush().map_err(lost("clFlush"))
    }

    fn writing(&mut self) -> usize {
        // What is wrong with the device shows when it is used next.
        let _ = self.reap();
        self.writing.len()
    }

    fn wipe(&mut self) -> Result<(), Lost> {
        let all = self.slots.iter_mut().map(|slot| &mut slot.shares).chain([&mut self.keys]);
        for buffer in all {
            let size = buffer.size().map_err(lost("clGetMemObjectInfo"))?;
            // SAFETY: the whole buffer, which no launch in flight uses.
            let filled = unsafe { self.key_queue.enqueue_fill_buffer(buffer, &[0_u8], 0, size, &[]) };
            filled.map_err(lost("clEnqueueFillBuffer"))?;
        }
        self.key_queue.finish().map_err(lost("clFinish"))?;
        self.writing.clear();
        Ok(())
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        for slot in &self.slots {
            slot.from.unmap(&slot.queue);
            slot.to.unmap(&slot.queue);
            let _ = slot.queue.finish();
        }
        // Records must stay until they have been read.
        let _ = self.key_queue.finish();
    }
}
