// What the kernel of copies uses of CUDA, on a host: a thread after another.

struct alignas(16) uint4 { unsigned int x, y, z, w; };

static struct { unsigned int x, y; } blockIdx, threadIdx;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __restrict__

static unsigned int __umulhi(unsigned int a, unsigned int b) {
    return (unsigned long long)a * b >> 32;
}

static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}

static unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int bits) {
    return ((unsigned long long)high << 32 | low) >> (bits & 31);
}

static unsigned int min(unsigned int a, unsigned int b) { return a < b ? a : b; }

template <typename T> static T __ldg(const T* source) { return *source; }

template <typename T> static void __stcs(T* target, T value) { *target = value; }
