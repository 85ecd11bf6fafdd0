//! Why a device cannot be opened.

use std::fmt;

use crate::runtime::Lost;

/// The oldest CUDA driver that this crate was made for, as the driver numbers them.
pub(crate) const CUDA_MIN: i32 = 11_000;

/// Why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// OpenCL's loader (`libOpenCL.so.1`) is not installed.
    NoOpenCl,
    /// OpenCL has no device: no driver is installed, or none finds one.
    NoOpenClDevice,
    /// NVIDIA's driver (`libcuda.so.1`) is not installed.
    NoCuda,
    /// NVIDIA's driver is too old: its version as it numbers them (12020 is 12.2).
    OldCuda {
        /// The version.
        found: i32,
    },
    /// NVIDIA's driver has no device.
    NoCudaDevice,
    /// CUDA's compiler of kernels (`libnvrtc.so`) is not installed.
    NoCompiler,
    /// There is no device of this index.
    NoDevice {
        /// The index.
        index: usize,
        /// The devices that there are.
        found: Vec<String>,
    },
    /// The kernels were not compiled.
    NotBuilt {
        /// The device.
        device: String,
        /// What the compiler says.
        log: String,
    },
    /// There is no memory for buffers of this size.
    NoMemory {
        /// The size of the buffer in bytes.
        bytes: usize,
    },
    /// A call of the driver failed.
    Driver(Lost),
    /// Neither runtime has a device.
    Neither {
        /// Why not by CUDA.
        cuda: Box<Unavailable>,
        /// Why not by OpenCL.
        opencl: Box<Unavailable>,
    },
}

impl Unavailable {
    /// What to do about it.
    pub fn help(&self) -> String {
        let text = match self {
            Unavailable::NoOpenCl => {
                "install the loader, `apt install ocl-icd-libopencl1`, and the driver of the GPU's vendor, or pocl-opencl-icd, \
                 which computes on the CPU"
            }
            Unavailable::NoOpenClDevice => {
                "install the OpenCL driver of the GPU's vendor, or pocl-opencl-icd, which computes on the CPU; `clinfo -l` lists \
                 devices"
            }
            Unavailable::NoCuda => "install NVIDIA's driver, or set `runtime = \"opencl\"`",
            Unavailable::OldCuda { .. } => "install a newer driver, or set `runtime = \"opencl\"`",
            Unavailable::NoCudaDevice => {
                "see whether `nvidia-smi` lists the GPU and this user may open /dev/nvidia*"
            }
            Unavailable::NoCompiler => {
                "install NVRTC, the compiler of kernels of the CUDA toolkit, where the linker finds it, or set \
                 `runtime = \"opencl\"`"
            }
            Unavailable::NoDevice { .. } => "set `device` to the index of one of them",
            Unavailable::NotBuilt { .. } => {
                "this is an error of Forebay's or of the driver's compiler: report it with the text above"
            }
            Unavailable::NoMemory { .. } => "lower `batch`, `queue` or `sessions`",
            Unavailable::Driver(_) => "see the system's log for messages of the driver",
            Unavailable::Neither { opencl, .. } => return opencl.help(),
        };
        text.to_owned()
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NoOpenCl => f.write_str("OpenCL is not installed: there is no libOpenCL.so.1"),
            Unavailable::NoOpenClDevice => f.write_str("OpenCL has no device"),
            Unavailable::NoCuda => f.write_str("CUDA is not installed: there is no libcuda.so.1"),
            Unavailable::OldCuda { found } => {
                let version = |number: &i32| format!("{}.{}", number / 1_000, number % 1_000 / 10);
                write!(f, "the driver is for CUDA {}, {} is needed", version(found), version(&CUDA_MIN))
            }
            Unavailable::NoCudaDevice => f.write_str("CUDA has no device"),
            Unavailable::NoCompiler => {
                f.write_str("CUDA's compiler of kernels is not installed: there is no libnvrtc.so")
            }
            Unavailable::NoDevice { index, found } => {
                let names = found.iter().enumerate().map(|(at, name)| format!("{at}: {name}"));
                let names = names.collect::<Vec<_>>().join(", ");
                write!(f, "there is no GPU of index {index}; there are {names}")
            }
            Unavailable::NotBuilt { device, log } => {
                write!(f, "the kernels were not compiled for {device}:\n{}", log.trim_end())
            }
            Unavailable::NoMemory { bytes } => {
                write!(f, "the device has no memory for a buffer of {bytes} bytes")
            }
            Unavailable::Driver(lost) => write!(f, "the GPU's driver failed: {lost}"),
            Unavailable::Neither { cuda, opencl } => write!(f, "no GPU was found: {cuda}; {opencl}"),
        }
    }
}

impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Message and hint, as they stand on the screen.
    fn said(error: Unavailable) -> String {
        format!("{error}\n{}", error.help())
    }

    #[test]
    fn what_is_not_installed_is_named_with_its_package() {
        let text = said(Unavailable::NoOpenCl);
        assert!(text.contains("libOpenCL.so.1") && text.contains("apt install ocl-icd-libopencl1"), "{text}");
        let text = said(Unavailable::NoOpenClDevice);
        assert!(text.starts_with("OpenCL has no device\n") && text.contains("pocl-opencl-icd"), "{text}");
        let text = said(Unavailable::NoCuda);
        assert!(text.contains("libcuda.so.1") && text.contains("runtime = \"opencl\""), "{text}");
        assert!(said(Unavailable::NoCompiler).contains("libnvrtc.so"));
        assert!(said(Unavailable::NoCudaDevice).contains("nvidia-smi"));
    }

    #[test]
    fn versions_and_devices_are_said_with_what_was_expected() {
        let text = said(Unavailable::OldCuda { found: 10_020 });
        assert!(text.starts_with("the driver is for CUDA 10.2, 11.0 is needed\n"), "{text}");
        let found = vec!["AMD EPYC (Portable Computing Language)".to_owned(), "gfx1100 (AMD)".to_owned()];
        let text = said(Unavailable::NoDevice { index: 2, found });
        let expected = "there is no GPU of index 2; there are 0: AMD EPYC (Portable Computing Language), 1: gfx1100 (AMD)\n";
        assert!(text.starts_with(expected) && text.contains("`device`"), "{text}");
    }

    #[test]
    fn where_nothing_is_both_reasons_are_said() {
        let (cuda, opencl) = (Box::new(Unavailable::NoCuda), Box::new(Unavailable::NoOpenCl));
        let text = said(Unavailable::Neither { cuda, opencl });
        assert!(text.contains("libcuda.so.1; OpenCL is not installed"), "{text}");
        assert!(text.contains("apt install ocl-icd-libopencl1"), "{text}");
    }

    #[test]
    fn failures_are_said_with_the_drivers_words() {
        let lost = Lost { call: "clFinish", reason: "CL_OUT_OF_RESOURCES".to_owned() };
        assert_eq!(
            Unavailable::Driver(lost).to_string(),
            "the GPU's driver failed: clFinish: CL_OUT_OF_RESOURCES"
        );
        let (device, log) = ("a GPU".to_owned(), "line 3: error\n".to_owned());
        let text = said(Unavailable::NotBuilt { device, log });
        assert!(text.starts_with("the kernels were not compiled for a GPU:\nline 3: error\n"), "{text}");
        assert!(said(Unavailable::NoMemory { bytes: 7 }).contains("7 bytes\nlower `batch`"));
    }
}
