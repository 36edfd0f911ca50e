// CudaSlots, NvrtcSlots: our own declarations of the functions of libcuda and NVRTC that Ostro uses.
//
// Both libraries are opened when a program runs, so nothing of NVIDIA's is needed to build Ostro. Handles are
// void*, a place on the device is a uint64_t, enumerations are int; tests/interop/check_nvrtc.py compares all
// of them with NVIDIA's headers. A function whose symbol ends in _v2 is the one that their headers mean by
// the name without it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ostro::gpu {

// SLOT(member, symbol, parameters): each returns an int, CUDA_SUCCESS or another value of CUresult.
#define OSTRO_CUDA_SLOTS(SLOT)                                                                             \
  SLOT(init, cuInit, (unsigned flags))                                                                     \
  SLOT(driver_version, cuDriverGetVersion, (int* version))                                                 \
  SLOT(error_name, cuGetErrorName, (int error, const char** text))                                         \
  SLOT(error_text, cuGetErrorString, (int error, const char** text))                                       \
  SLOT(device_count, cuDeviceGetCount, (int* count))                                                       \
  SLOT(device, cuDeviceGet, (int* device, int ordinal))                                                    \
  SLOT(device_name, cuDeviceGetName, (char* name, int bytes, int device))                                  \
  SLOT(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, int device))                    \
  SLOT(device_memory, cuDeviceTotalMem_v2, (size_t* bytes, int device))                                    \
  SLOT(retain_context, cuDevicePrimaryCtxRetain, (void** context, int device))                             \
  SLOT(release_context, cuDevicePrimaryCtxRelease_v2, (int device))                                        \
  SLOT(set_context, cuCtxSetCurrent, (void* context))                                                      \
  SLOT(memory_info, cuMemGetInfo_v2, (size_t* free, size_t* total))                                        \
  SLOT(allocate, cuMemAlloc_v2, (uint64_t* address, size_t bytes))                                         \
  SLOT(free, cuMemFree_v2, (uint64_t address))                                                             \
  SLOT(allocate_pinned, cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                    \
  SLOT(copy_in, cuMemcpyHtoDAsync_v2, (uint64_t to, const void* from, size_t bytes, void* stream))         \
  SLOT(copy_out, cuMemcpyDtoHAsync_v2, (void* to, uint64_t from, size_t bytes, void* stream))              \
  SLOT(copy_inside, cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void* stream))        \
  SLOT(create_stream, cuStreamCreate, (void** stream, unsigned flags))                                     \
  SLOT(wait_stream, cuStreamSynchronize, (void* stream))                                                   \
  SLOT(stream_waits, cuStreamWaitEvent, (void* stream, void* event, unsigned flags))                       \
  SLOT(create_event, cuEventCreate, (void** event, unsigned flags))                                        \
  SLOT(record_event, cuEventRecord, (void* event, void* stream))                                           \
  SLOT(wait_event, cuEventSynchronize, (void* event))                                                      \
  SLOT(destroy_event, cuEventDestroy_v2, (void* event))                                                    \
  SLOT(load_module, cuModuleLoadData, (void** module, const void* image))                                  \
  SLOT(module_function, cuModuleGetFunction, (void** function, void* module, const char* name))            \
  SLOT(set_function_attribute, cuFuncSetAttribute, (void* function, int attribute, int value))             \
  SLOT(encode_tiles, cuTensorMapEncodeTiled,                                                               \
       (void* map, int type, unsigned rank, void* address, const uint64_t* sizes, const uint64_t* strides, \
        const unsigned* box, const unsigned* steps, int interleave, int swizzle, int promotion, int fill)) \
  SLOT(launch, cuLaunchKernel,                                                                             \
       (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,               \
        unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,        \
        void** extra))

// NVRTC: each returns an int, NVRTC_SUCCESS or another value of nvrtcResult.
#define OSTRO_NVRTC_SLOTS(SLOT)                                                                           \
  SLOT(version, nvrtcVersion, (int* major, int* minor))                                                   \
  SLOT(architecture_count, nvrtcGetNumSupportedArchs, (int* count))                                       \
  SLOT(architectures, nvrtcGetSupportedArchs, (int* list))                                                \
  SLOT(create_program, nvrtcCreateProgram,                                                                \
       (void** program, const char* text, const char* name, int headers, const char* const* header_texts, \
        const char* const* header_names))                                                                 \
  SLOT(compile_program, nvrtcCompileProgram, (void* program, int count, const char* const* options))      \
  SLOT(code_size, nvrtcGetCUBINSize, (void* program, size_t* bytes))                                      \
  SLOT(code, nvrtcGetCUBIN, (void* program, char* code))                                                  \
  SLOT(log_size, nvrtcGetProgramLogSize, (void* program, size_t* bytes))                                  \
  SLOT(log, nvrtcGetProgramLog, (void* program, char* log))                                               \
  SLOT(destroy_program, nvrtcDestroyProgram, (void** program))

#define OSTRO_SLOT_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
struct CudaSlots {
  OSTRO_CUDA_SLOTS(OSTRO_SLOT_MEMBER)
};
struct NvrtcSlots {
  OSTRO_NVRTC_SLOTS(OSTRO_SLOT_MEMBER)
};
#undef OSTRO_SLOT_MEMBER

// OSTRO_CUDA_VALUES(VALUE): VALUE(name here, name in NVIDIA's headers, number).
#define OSTRO_CUDA_VALUES(VALUE)                                                     \
  VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY, 2)                                   \
  VALUE(kStubLibrary, CUDA_ERROR_STUB_LIBRARY, 34)                                   \
  VALUE(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                       \
  VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE, 100)                                        \
  VALUE(kInvalidImage, CUDA_ERROR_INVALID_IMAGE, 200)                                \
  VALUE(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                          \
  VALUE(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE, 214)                        \
  VALUE(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                  \
  VALUE(kContained, CUDA_ERROR_CONTAINED, 226)                                       \
  VALUE(kSymbolNotFound, CUDA_ERROR_NOT_FOUND, 500)                                  \
  VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                            \
  VALUE(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)              \
  VALUE(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                              \
  VALUE(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                   \
  VALUE(kAssert, CUDA_ERROR_ASSERT, 710)                                             \
  VALUE(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                   \
  VALUE(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                    \
  VALUE(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                      \
  VALUE(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                 \
  VALUE(kInvalidPc, CUDA_ERROR_INVALID_PC, 718)                                      \
  VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED, 719)                                \
  VALUE(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY, 802)                           \
  VALUE(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)               \
  VALUE(kUnknown, CUDA_ERROR_UNKNOWN, 999)                                           \
  VALUE(kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)              \
  VALUE(kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)          \
  VALUE(kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)          \
  VALUE(kMostSharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
  VALUE(kDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)     \
  VALUE(kOwnStream, CU_STREAM_NON_BLOCKING, 1)                                       \
  VALUE(kEventWithoutTime, CU_EVENT_DISABLE_TIMING, 2)                               \
  VALUE(kTileOfBytes, CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                              \
  VALUE(kTileInOrder, CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                              \
  VALUE(kTileSwizzled128, CU_TENSOR_MAP_SWIZZLE_128B, 3)                             \
  VALUE(kTileThroughL2, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                       \
  VALUE(kTileEndsInZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)                      \
  VALUE(kCompilationFailed, NVRTC_ERROR_COMPILATION, 6)

#define OSTRO_CUDA_CONSTANT(name, theirs, number) inline constexpr int name = number;
OSTRO_CUDA_VALUES(OSTRO_CUDA_CONSTANT)
#undef OSTRO_CUDA_CONSTANT

// Words of the `extra` list of a launch: the arguments as one stretch of bytes (cuLaunchKernel).
inline void* const kArgumentEnd = nullptr;
inline void* const kArgumentBytes = reinterpret_cast<void*>(1);
inline void* const kArgumentSize = reinterpret_cast<void*>(2);

}  // namespace ostro::gpu
