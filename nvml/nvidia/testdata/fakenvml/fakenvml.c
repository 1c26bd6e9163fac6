/*
 * A library that answers in place of the NVIDIA driver's, for tests.
 *
 * What it plays stands in a text file beside it, "<library>.state", which every call reads again:
 *
 *   driver 550.163.01       version of the driver
 *   init 9                  nvmlInit fails with this code
 *   init.hang 1500          nvmlInit takes so many milliseconds
 *   cards RTX4090 A100      the cards, of the kinds below, in order
 *   0.lost 1                card 0 has fallen off the bus
 *   0.hang 60000            every call on card 0 takes so many milliseconds, or until the line is gone
 *   0.fail.power 4          one call on card 0 fails with this code; the names are those given to ENTER
 *   0.util 50               and other readings: used energy unc cor reasons recovery temp
 *   0.uuid GPU-x            another UUID than the usual one
 *   0.xid 79                the Xid that is reported whenever the next line changes
 *   0.xid.seq 1
 *   0.mig 1                 card 0 is in MIG mode
 *   0.slices 2              and divided into so many slices
 *
 * A power limit that was set lives as long as the process, as with a driver that nobody else uses.
 *
 * Built with -DFAKE_BARE it has nothing but nvmlInit_v2, nvmlShutdown and nvmlErrorString; with -DFAKE_THIN it also has what
 * it takes to list a card; with -DFAKE_OLD it lacks what came with newer drivers; with -DFAKE_EMPTY it has nothing at all.
 *
 * The layouts come from the header of go-nvml, which wraps handles in structs of one pointer: the same in a call.
 */
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nvml.h>

#ifndef FAKE_EMPTY

#define MAX_CARDS 16
#define MAX_SLICES 7

static const char *state_path(void)
{
	static __thread char path[4096];
	Dl_info self;
	if (!dladdr((void *)state_path, &self))
		return "";
	snprintf(path, sizeof path, "%s.state", self.dli_fname);
	return path;
}

/* The rest of the line that begins with the key and a space, or NULL. */
static const char *state(const char *key)
{
	static __thread char line[1024];
	size_t n = strlen(key);
	const char *found = NULL;
	FILE *f = fopen(state_path(), "r");
	while (f && !found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, key, n) && line[n] == ' ')
			found = line + n + 1;
	}
	if (f)
		fclose(f);
	return found;
}

static long long number(const char *key, long long otherwise)
{
	const char *s = state(key);
	return s ? atoll(s) : otherwise;
}

static long long millis(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Hangs for as long as the state says, or until it says otherwise. */
static void hang(const char *key)
{
	for (long long start = millis(); millis() - start < number(key, 0);)
		usleep(5000);
}

DECLDIR nvmlReturn_t nvmlInit_v2(void)
{
	hang("init.hang");
	return number("init", NVML_SUCCESS);
}

DECLDIR nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
DECLDIR const char *nvmlErrorString(nvmlReturn_t r) { (void)r; return "an error of the fake library"; }

#ifndef FAKE_BARE

struct kind {
	const char *word, *name;
	unsigned long long mib, reserved_mib;
	int major, minor;
	unsigned mhz, mw, gen;
	int ecc, mig, display; /* -1: not supported */
};

static const struct kind kinds[] = {
	{"RTX4090", "NVIDIA GeForce RTX 4090", 24564, 512, 8, 9, 3105, 450000, 4, -1, -1, 1},
	{"A100", "NVIDIA A100-SXM4-80GB", 81920, 640, 8, 0, 1410, 400000, 4, 1, 0, 0},
	{"H100", "NVIDIA H100 80GB HBM3", 81559, 551, 9, 0, 1980, 700000, 5, 1, 0, 0},
};

struct nvmlDevice_st { int index, slice; }; /* slice 0 is the card itself */
static struct nvmlDevice_st devices[MAX_CARDS];

static int count(void)
{
	const char *s = state("cards");
	int n = 0;
	for (; s && *s; s += strcspn(s, " "), s += strspn(s, " "))
		n++;
	return n < MAX_CARDS ? n : MAX_CARDS;
}

static const struct kind *kind(int index)
{
	const char *s = state("cards");
	for (int i = 0; s && i < index; i++)
		s += strcspn(s, " "), s += strspn(s, " ");
	for (size_t k = 0; s && k < sizeof kinds / sizeof *kinds; k++) {
		size_t n = strlen(kinds[k].word);
		if (!strncmp(s, kinds[k].word, n) && (!s[n] || s[n] == ' '))
			return &kinds[k];
	}
	return &kinds[0];
}

static long long of(int index, const char *what, long long otherwise)
{
	char key[128];
	snprintf(key, sizeof key, "%d.%s", index, what);
	return number(key, otherwise);
}

/* What happens to every call on a card. */
static nvmlReturn_t enter(nvmlDevice_t d, const char *call)
{
	char key[128];
	if (!d.handle)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(key, sizeof key, "%d.hang", d.handle->index);
	hang(key);
	if (d.handle->index >= count() || of(d.handle->index, "lost", 0))
		return NVML_ERROR_GPU_IS_LOST;
	snprintf(key, sizeof key, "fail.%s", call);
	return of(d.handle->index, key, NVML_SUCCESS);
}

#define ENTER(call)                                                                                                    \
	nvmlReturn_t r = enter(d, call);                                                                               \
	if (r != NVML_SUCCESS)                                                                                         \
		return r;                                                                                              \
	int i = d.handle->index;                                                                                       \
	const struct kind *k = kind(i);                                                                                \
	(void)i, (void)k

static nvmlReturn_t text(char *out, unsigned n, const char *s)
{
	if (strlen(s) >= n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, s);
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) { return *out = count(), NVML_SUCCESS; }

DECLDIR nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out)
{
	if (index >= (unsigned)count())
		return NVML_ERROR_INVALID_ARGUMENT;
	if (of(index, "lost", 0))
		return NVML_ERROR_GPU_IS_LOST;
	devices[index].index = index;
	out->handle = &devices[index];
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned n)
{
	char key[32], uuid[64];
	ENTER("uuid");
	snprintf(key, sizeof key, "%d.uuid", i);
	const char *s = d.handle->slice ? NULL : state(key);
	if (d.handle->slice)
		snprintf(uuid, sizeof uuid, "MIG-00000000-0000-4000-9000-%06d%06d", i, d.handle->slice);
	else
		snprintf(uuid, sizeof uuid, "GPU-00000000-0000-4000-8000-%012d", i);
	return text(out, n, s ? s : uuid);
}

DECLDIR nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out)
{
	ENTER("memory");
	out->total = k->mib << 20;
	out->used = of(i, "used", k->reserved_mib << 20);
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}

#ifndef FAKE_THIN

/* A call on a card that sets one thing. */
#define GET(name, type, call, value)                                                                                   \
	DECLDIR nvmlReturn_t name(nvmlDevice_t d, type *out)                                                           \
	{                                                                                                              \
		ENTER(call);                                                                                           \
		*out = (value);                                                                                        \
		return NVML_SUCCESS;                                                                                   \
	}

DECLDIR nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned n)
{
	const char *s = state("driver");
	return text(out, n, s ? s : "550.163.01");
}

DECLDIR nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *out)
{
	return *out = number("cuda", 12040), NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned n)
{
	ENTER("name");
	return text(out, n, k->name);
}

static nvmlReturn_t pci(nvmlDevice_t d, nvmlPciInfo_t *out)
{
	ENTER("pci");
	memset(out, 0, sizeof *out);
	out->bus = i + 1;
	snprintf(out->busId, sizeof out->busId, "00000000:%02X:00.0", i + 1);
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t d, nvmlPciInfo_t *out) { return pci(d, out); }

DECLDIR nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
	ENTER("capability");
	*major = k->major, *minor = k->minor;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *out)
{
	ENTER("maxclock");
	*out = k->mhz;
	return type == NVML_CLOCK_SM ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

DECLDIR nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *out)
{
	ENTER("clock");
	*out = of(i, "util", 0) ? k->mhz : 210;
	return type == NVML_CLOCK_SM ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

GET(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "gen", of(i, "util", 0) ? k->gen : 1)
GET(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "maxgen", k->gen)
GET(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "width", 16)
GET(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "maxwidth", 16)
GET(nvmlDeviceGetDisplayMode, nvmlEnableState_t, "display", k->display)
GET(nvmlDeviceGetPowerUsage, unsigned, "power", of(i, "util", 0) ? k->mw : 20000)
GET(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "reasons", of(i, "reasons", 1))

static unsigned limits[MAX_CARDS];

GET(nvmlDeviceGetPowerManagementLimit, unsigned, "nowlimit", limits[i] ? limits[i] : k->mw)
GET(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "ownlimit", k->mw)

DECLDIR nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned *least, unsigned *most)
{
	ENTER("bounds");
	*least = 100000, *most = k->mw;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t d, unsigned mw)
{
	ENTER("setlimit");
	if (mw < 100000 || mw > k->mw)
		return NVML_ERROR_INVALID_ARGUMENT;
	limits[i] = mw;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned *out)
{
	ENTER("temp");
	(void)sensor;
	*out = of(i, "temp", 35);
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out)
{
	ENTER("util");
	out->gpu = of(i, "util", 0);
	out->memory = 0;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *now, nvmlEnableState_t *pending)
{
	ENTER("eccmode");
	*now = *pending = k->ecc;
	return k->ecc < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
						 unsigned long long *out)
{
	ENTER("ecc");
	if (k->ecc < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*out = counter != NVML_VOLATILE_ECC ? 1000 : of(i, type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? "unc" : "cor", 0);
	return NVML_SUCCESS;
}

struct nvmlEventSet_st { char watched[MAX_CARDS]; long long seen[MAX_CARDS]; };

DECLDIR nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out)
{
	out->handle = calloc(1, sizeof *out->handle);
	return out->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

GET(nvmlDeviceGetSupportedEventTypes, unsigned long long, "events", nvmlEventTypeXidCriticalError)

DECLDIR nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
{
	ENTER("register");
	if (types != nvmlEventTypeXidCriticalError)
		return NVML_ERROR_INVALID_ARGUMENT;
	set.handle->seen[i] = of(i, "xid.seq", 0);
	set.handle->watched[i] = 1;
	return NVML_SUCCESS;
}

static nvmlReturn_t event_wait(nvmlEventSet_t set, nvmlEventData_t *out, unsigned ms)
{
	long long start = millis();
	do {
		for (int i = 0; i < count(); i++) {
			long long seq = of(i, "xid.seq", 0);
			if (!set.handle->watched[i] || seq == set.handle->seen[i])
				continue;
			set.handle->seen[i] = seq;
			memset(out, 0, sizeof *out);
			out->device.handle = &devices[i];
			out->eventType = nvmlEventTypeXidCriticalError;
			out->eventData = of(i, "xid", 0);
			return NVML_SUCCESS;
		}
		usleep(10000);
	} while (millis() - start < ms);
	return NVML_ERROR_TIMEOUT;
}

DECLDIR nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *out, unsigned ms)
{
	return event_wait(set, out, ms);
}

#ifndef FAKE_OLD

DECLDIR nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned ms)
{
	return event_wait(set, out, ms);
}

DECLDIR nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *out) { return pci(d, out); }

DECLDIR nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *out)
{
	ENTER("memory2");
	if (out->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	out->total = k->mib << 20;
	out->reserved = k->reserved_mib << 20;
	out->used = 0;
	out->free = out->total - out->reserved;
	return NVML_SUCCESS;
}

GET(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit", limits[i] ? limits[i] : k->mw)
GET(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons", of(i, "reasons", 1))
GET(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy", of(i, "energy", millis() * 20))

DECLDIR nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *pending)
{
	ENTER("mig");
	*now = *pending = of(i, "mig", k->mig);
	return k->mig < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *values)
{
	ENTER("fields");
	for (int v = 0; v < n; v++) {
		long long action = of(i, "recovery", -1);
		values[v].nvmlReturn = action < 0 || values[v].fieldId != NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
					       ? NVML_ERROR_NOT_SUPPORTED
					       : NVML_SUCCESS;
		values[v].value.uiVal = action;
	}
	return NVML_SUCCESS;
}

/* What nvcdi asks for. */

static struct nvmlDevice_st slices[MAX_CARDS][MAX_SLICES];

GET(nvmlDeviceGetIndex, unsigned, "index", d.handle->slice ? d.handle->slice - 1 : i)
GET(nvmlDeviceGetMinorNumber, unsigned, "minor", of(i, "minor", i))
GET(nvmlDeviceIsMigDeviceHandle, unsigned, "ismig", d.handle->slice > 0)
GET(nvmlDeviceGetMaxMigDeviceCount, unsigned, "maxmig", MAX_SLICES)
GET(nvmlDeviceGetGpuInstanceId, unsigned, "gi", d.handle->slice + 6)
GET(nvmlDeviceGetComputeInstanceId, unsigned, "ci", 0)

DECLDIR nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned index, nvmlDevice_t *out)
{
	ENTER("migbyindex");
	if (of(i, "mig", k->mig) != 1 || index >= MAX_SLICES || index >= of(i, "slices", 0))
		return NVML_ERROR_NOT_FOUND;
	slices[i][index].index = i;
	slices[i][index].slice = index + 1;
	out->handle = &slices[i][index];
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *out)
{
	ENTER("parent");
	return nvmlDeviceGetHandleByIndex_v2(i, out);
}

DECLDIR nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
	char name[96];
	for (int i = 0; i < count(); i++) {
		nvmlDevice_t card, slice;
		if (nvmlDeviceGetHandleByIndex_v2(i, &card) != NVML_SUCCESS)
			continue;
		if (nvmlDeviceGetUUID(card, name, sizeof name) == NVML_SUCCESS && !strcmp(name, uuid))
			return *out = card, NVML_SUCCESS;
		for (int s = 0; nvmlDeviceGetMigDeviceHandleByIndex(card, s, &slice) == NVML_SUCCESS; s++)
			if (nvmlDeviceGetUUID(slice, name, sizeof name) == NVML_SUCCESS && !strcmp(name, uuid))
				return *out = slice, NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

DECLDIR nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t d, nvmlDeviceAttributes_t *out)
{
	ENTER("attributes");
	memset(out, 0, sizeof *out);
	out->gpuInstanceSliceCount = out->computeInstanceSliceCount = 1;
	out->memorySizeMB = k->mib / 8;
	return NVML_SUCCESS;
}

/* Every slice is of the smallest profile. */
#define SMALLEST 19

struct nvmlGpuInstance_st { int index, id; };
static struct nvmlGpuInstance_st instances[MAX_CARDS][MAX_SLICES];

DECLDIR nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t d, unsigned id, nvmlGpuInstance_t *out)
{
	ENTER("gibyid");
	if (id < 7 || id >= 7 + MAX_SLICES)
		return NVML_ERROR_NOT_FOUND;
	out->handle = &instances[i][id - 7];
	out->handle->index = i, out->handle->id = id;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t g, nvmlGpuInstanceInfo_t *out)
{
	memset(out, 0, sizeof *out);
	out->id = g.handle->id, out->profileId = SMALLEST;
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t g, unsigned id, nvmlComputeInstance_t *out)
{
	out->handle = (struct nvmlComputeInstance_st *)g.handle; /* one in each */
	return id ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *out)
{
	(void)c;
	memset(out, 0, sizeof *out);
	return NVML_SUCCESS;
}

DECLDIR nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned profile, nvmlGpuInstanceProfileInfo_t *out)
{
	ENTER("giprofile");
	memset(out, 0, sizeof *out);
	out->id = SMALLEST, out->sliceCount = 1, out->memorySizeMB = k->mib / 8;
	return profile == NVML_GPU_INSTANCE_PROFILE_1_SLICE ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

DECLDIR nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t g, unsigned profile, unsigned engine,
								   nvmlComputeInstanceProfileInfo_t *out)
{
	(void)g, (void)engine;
	memset(out, 0, sizeof *out);
	return profile == NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

#endif /* FAKE_OLD */
#endif /* FAKE_THIN */
#endif /* FAKE_BARE */
#endif /* FAKE_EMPTY */
