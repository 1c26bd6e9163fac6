/*
 * A library that answers in place of the NVIDIA driver's libcuda, for tests. The memory of its one card is a file beside it,
 * "<library>.memory", so that a test can look at what was left there before and after. CUDA_VISIBLE_DEVICES must name the card.
 *
 * What it plays stands in a text file, "<library>.state", which every call reads again:
 *
 *   uuid 00000000000040008000000000000000   the card's UUID, in hexadecimal digits
 *   held 16                 another process holds so many MiB, at the end of the memory
 *   largest 8               no more than so many MiB hang together
 *   fail.cuInit 999         a function fails with this code
 *   hang.cuMemsetD32_v2 600000   a function takes so many milliseconds, or until the line is gone
 *   forget 1                memory that is set keeps what it held
 *   end.cuInit 1            a function ends the process
 *
 * Built with -DFAKE_OLD it lacks cuDeviceGetUuid_v2, as drivers before 470 do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define OWN (2 * MIB) /* what a context takes for itself, at the start of the memory */
#define MAX_PIECES 4096

enum { OK = 0, BAD_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100 };

static char *memory;
static size_t size;
static int entered;
static struct { size_t from, to; } pieces[MAX_PIECES];
static size_t taken;

static const char *beside(const char *suffix)
{
	static __thread char path[4096];
	Dl_info self;
	if (!dladdr((void *)beside, &self))
		return "";
	snprintf(path, sizeof path, "%s.%s", self.dli_fname, suffix);
	return path;
}

/* The rest of the line that begins with the words and a space, or NULL. */
static const char *state(const char *first, const char *second)
{
	static __thread char line[1024];
	char key[128];
	const char *found = NULL;
	FILE *f = fopen(beside("state"), "r");
	size_t n = snprintf(key, sizeof key, "%s%s ", first, second);
	while (f && !found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, key, n))
			found = line + n;
	}
	if (f)
		fclose(f);
	return found;
}

static long long number(const char *first, const char *second)
{
	const char *s = state(first, second);
	return s ? atoll(s) : 0;
}

static long long millis(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* What happens to every call. */
static int enter(const char *call)
{
	for (long long start = millis(); millis() - start < number("hang.", call);)
		usleep(5000);
	if (number("end.", call))
		_exit(9);
	return number("fail.", call);
}

#define ENTER                                                                                                          \
	int r = enter(__func__);                                                                                       \
	if (r)                                                                                                         \
	return r

static size_t usable(void)
{
	size_t held = number("held", "") * MIB;
	return held + OWN < size ? size - held : OWN;
}

int cuInit(unsigned flags)
{
	struct stat s;
	ENTER;
	int fd = open(beside("memory"), O_RDWR);
	if (flags || fd < 0 || fstat(fd, &s))
		return NO_DEVICE;
	size = s.st_size;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NO_DEVICE : OK;
}

int cuDeviceGetCount(int *n)
{
	ENTER;
	const char *seen = getenv("CUDA_VISIBLE_DEVICES");
	*n = seen && (!strncmp(seen, "GPU-", 4) || !strncmp(seen, "MIG-", 4));
	return OK;
}

int cuDeviceGet(int *dev, int index)
{
	ENTER;
	*dev = 7;
	return index ? NO_DEVICE : OK;
}

#ifndef FAKE_OLD
int cuDeviceGetUuid_v2(unsigned char *id, int dev)
{
	ENTER;
	const char *s = state("uuid", "");
	for (int i = 0; s && i < 16; i++)
		if (sscanf(s + 2 * i, "%2hhx", &id[i]) != 1)
			return BAD_VALUE;
	return dev == 7 && s ? OK : BAD_VALUE;
}
#endif

int cuDevicePrimaryCtxRetain(void **ctx, int dev)
{
	ENTER;
	*ctx = pieces;
	return dev == 7 ? OK : BAD_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int dev)
{
	ENTER;
	return dev == 7 ? OK : BAD_VALUE;
}

int cuCtxSetCurrent(void *ctx)
{
	ENTER;
	entered = ctx == pieces;
	return OK;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	ENTER;
	*total = size;
	*free = usable() - OWN;
	for (size_t i = 0; i < taken; i++)
		*free -= pieces[i].to - pieces[i].from;
	return entered ? OK : BAD_VALUE;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	ENTER;
	size_t most = number("largest", "") * MIB, from = taken ? pieces[taken - 1].to : OWN;
	if (!entered || !bytes || bytes % (2 * MIB))
		return BAD_VALUE;
	if (taken == MAX_PIECES || from + bytes > usable() || (most && bytes > most))
		return NO_MEMORY;
	pieces[taken].from = from;
	pieces[taken++].to = from + bytes;
	*at = (uint64_t)(uintptr_t)(memory + from);
	return OK;
}

static int held(uint64_t at, size_t bytes)
{
	size_t from = (char *)(uintptr_t)at - memory;
	for (size_t i = 0; i < taken; i++)
		if (from >= pieces[i].from && from + bytes <= pieces[i].to)
			return 1;
	return 0;
}

int cuMemFree_v2(uint64_t at)
{
	ENTER;
	return held(at, 1) ? OK : BAD_VALUE;
}

int cuMemsetD32_v2(uint64_t at, unsigned word, size_t words)
{
	ENTER;
	if (!entered || !held(at, 4 * words))
		return BAD_VALUE;
	if (!number("forget", ""))
		for (uint32_t *p = (uint32_t *)(uintptr_t)at; words--; p++)
			*p = word;
	return OK;
}

int cuMemcpyDtoH_v2(void *to, uint64_t at, size_t bytes)
{
	ENTER;
	if (!entered || !held(at, bytes))
		return BAD_VALUE;
	memcpy(to, (void *)(uintptr_t)at, bytes);
	return OK;
}

int cuCtxSynchronize(void)
{
	ENTER;
	return entered ? OK : BAD_VALUE;
}
