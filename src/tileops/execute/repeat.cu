// A repetition between strided arrays. Each thread reads the bytes of one store and writes them to
// several of their repeats. A store is as wide as the target allows, however narrow the rows of the
// source are, because a thread assembles each store from pieces.
//
// Pieces are numbered in the order of the loops. A period is the fewest innermost loops that hold
// at least the pieces of a store, so that a store lies within one period or crosses into the next.
// These parameters of a kernel are defined before this text:
//   LOAD, STORE   the bytes of a piece and of a store: powers of two up to 16, LOAD <= STORE
//   OUTER, INNER  the number of loops around a period, and inside it
//   CROSSES       1 if a store may cross into the next period; 0 if no store does, or if the outer
//                 loop appears again as the first inner loop, which counts on as if it had no end
//   IS_RUN        1 if a period is one contiguous stretch of the source, in pieces of 1 or 2 bytes
//   BITS          the bits of a piece's number: 32 if there are at most 2^31 pieces, otherwise 64
//   INNER_BITS    the same for pieces in a period, and for the distances between them in bytes
//   THREADS       the number of threads in a block

template <int bits> struct Unsigned;
template <> struct Unsigned<8> { typedef unsigned char Type; };
template <> struct Unsigned<16> { typedef unsigned short Type; };
template <> struct Unsigned<32> { typedef unsigned int Type; };
template <> struct Unsigned<64> { typedef unsigned long long Type; };
template <> struct Unsigned<128> { typedef uint4 Type; };

typedef Unsigned<8 * LOAD>::Type Piece;
typedef Unsigned<8 * STORE>::Type Store;
typedef Unsigned<BITS>::Type Index;
typedef Unsigned<INNER_BITS>::Type Inner;

#define PIECES (STORE / LOAD)

// Divides by a number d of 2 or more: for each n whose top bit is 0, n / d is the upper half of
// n * factor, shifted. Nothing is divided by 1, because loops of one round are dropped.
struct Divisor {
    unsigned long long factor;
    unsigned int shift;
};

struct Loop {
    Divisor rounds;
    long long source, target;  // the stride, minus the next loop's stride times its rounds
};

// A `Launch` of tileops/_copies/gpu.py, which tileops/execute/device.py packs.
struct Launch {
    Index stores;                // the number of stores in all loops
    Index period;                // the number of pieces in the inner loops
    Divisor periods_of;          // divides by `period`
    unsigned int tail;           // the pieces of the last store if it is not full, otherwise 0
    unsigned int repeats;        // how often each store is repeated
    unsigned int at_once;        // how many of these repeats one thread writes
    long long stride;            // the bytes from one repeat to the next
    Loop loops[OUTER + INNER];   // the innermost last
};

union Word {
    Store all;
    Piece pieces[PIECES];
    unsigned int quarters[(STORE + 3) / 4];
};

__device__ __forceinline__ unsigned int divide(unsigned int n, const Divisor& by) {
    return __umulhi(n, (unsigned int)by.factor) >> by.shift;
}

__device__ __forceinline__ unsigned long long divide(unsigned long long n, const Divisor& by) {
    return __umul64hi(n, by.factor) >> by.shift;
}

// Return the offset in bytes of a round of the loops `first` to `last`, where `round` counts all
// rounds of the innermost one; modulo 2^32 if Distance has 32 bits. Because strides are relative,
// they are multiplied by whole quotients, and no remainders are needed.
template <int first, int last, typename Distance, typename Round>
__device__ __forceinline__ Distance distance(
    const Launch& launch, Round round, long long Loop::*stride) {
    Distance bytes = 0;
#pragma unroll
    for (int axis = last; axis >= first; --axis) {
        const Loop& loop = launch.loops[axis];
        bytes += (Distance)round * (Distance)(loop.*stride);
        round = divide(round, loop.rounds);
    }
    return bytes;
}

__device__ __forceinline__ long long outside(
    const Launch& launch, Index period, long long Loop::*stride) {
    return distance<0, OUTER - 1, unsigned long long>(launch, period, stride);
}

__device__ __forceinline__ long long inside(
    const Launch& launch, Inner at, long long Loop::*stride) {
    return distance<OUTER, OUTER + INNER - 1, unsigned long long>(launch, at, stride);
}

// The same as `inside`, for the source only, computed in as few bits as suffice.
__device__ __forceinline__ long long near(const Launch& launch, Inner at) {
    const Inner bytes = distance<OUTER, OUTER + INNER - 1, Inner>(launch, at, &Loop::source);
    return INNER_BITS == 32 ? (long long)(int)bytes : (long long)bytes;
}

// Set a piece of a word; the pieces before it in the same quarter must be set already.
__device__ __forceinline__ void put(Word& word, int i, Piece piece) {
#if LOAD < 4
    const int shift = 8 * (i * LOAD % 4);
    unsigned int& quarter = word.quarters[i * LOAD / 4];
    quarter = shift ? quarter | (unsigned int)piece << shift : piece;
#else
    word.pieces[i] = piece;
#endif
}

#if IS_RUN
// Load the bytes `begin` to `end` of a word from any address, in aligned quarters. Only quarters
// that contain some of these bytes are read: a quarter may extend beyond the source, but not into
// another unit of allocation.
__device__ __forceinline__ Word load_bytes(const char* source, int begin, int end) {
    const int skipped = (unsigned long long)source & 3;
    const unsigned int* aligned = (const unsigned int*)(source - skipped);
    unsigned int quarters[STORE / 4 + 1];
#pragma unroll
    for (int i = 0; i <= STORE / 4; ++i)
        quarters[i] = 4 * i + 4 > begin + skipped && 4 * i < end + skipped ? __ldg(aligned + i) : 0;
    Word word;
#pragma unroll
    for (int i = 0; i < STORE / 4; ++i)
        word.quarters[i] = __funnelshift_r(quarters[i], quarters[i + 1], 8 * skipped);
    return word;
}
#endif

// Read the pieces of a store: the first ones from piece `at` on in a period that begins at `begin`,
// and the others from the start of the next period.
__device__ __forceinline__ Word load(
    const char* begin, const char* next, const Launch& launch, Inner at, int first_pieces) {
    const char* first = begin + inside(launch, at, &Loop::source);
#if IS_RUN
    const int end = first_pieces * LOAD;
    Word word = load_bytes(first, 0, end);
    if (end < STORE) {
        const Word after = load_bytes(next - end, end, STORE);
#pragma unroll
        for (int i = 0; i < STORE / 4; ++i) {
            const int kept = end - 4 * i;
            const unsigned int mask = kept >= 4 ? ~0u : kept <= 0 ? 0 : (1u << 8 * kept) - 1;
            word.quarters[i] = (word.quarters[i] & mask) | (after.quarters[i] & ~mask);
        }
    }
#else
    Word word;
    put(word, 0, __ldg((const Piece*)first));
#pragma unroll
    for (int i = 1; i < PIECES; ++i) {
        const bool is_first = !CROSSES || i < first_pieces;
        const Inner piece = is_first ? at + i : i - first_pieces;
        put(word, i, __ldg((const Piece*)((is_first ? begin : next) + near(launch, piece))));
    }
#endif
    return word;
}

extern "C" __global__ void __launch_bounds__(THREADS) tileops_repeat(
    const char* __restrict__ source, char* __restrict__ target, const Launch launch) {
    const Index store = (Index)blockIdx.x * THREADS + threadIdx.x;
    if (store >= launch.stores)
        return;
    const Index piece = store * PIECES;
    const Index period = OUTER ? divide(piece, launch.periods_of) : 0;
    const Inner at = piece - period * launch.period;
    const char* begin = source + outside(launch, period, &Loop::source);
#if OUTER && defined __CUDA_ARCH__
    asm("" : "+l"(begin));  // otherwise the compiler adds its parts up again for each piece
#endif
    const unsigned int first_repeat = blockIdx.y * launch.at_once;
    target += outside(launch, period, &Loop::target) + inside(launch, at, &Loop::target);
    target += first_repeat * launch.stride;

    if (launch.tail && store + 1 == launch.stores) {
#pragma unroll 1
        for (int i = 0; i < launch.tail; ++i) {
            const char* from = begin + inside(launch, at + i, &Loop::source);
            __stcs((Piece*)target + i, __ldg((const Piece*)from));
        }
        return;
    }
    int first_pieces = PIECES;
    const char* next = source;
#if CROSSES
    if (launch.period - at < PIECES) {
        first_pieces = launch.period - at;
        next += outside(launch, period + 1, &Loop::source);
    }
#endif
    const Word word = load(begin, next, launch, at, first_pieces);
    const unsigned int times = min(launch.repeats - first_repeat, launch.at_once);
    // Streaming stores leave the source in the cache.
    for (unsigned int i = 0; i < times; ++i, target += launch.stride)
        __stcs((Store*)target, word.all);
}
