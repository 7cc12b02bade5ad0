/* SPDX-License-Identifier: MIT */
/* The checks of this machine, of its settings, and of this user's rights. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/progress_line.h"

/* Bits of capabilities (include/uapi/linux/capability.h). */
#define SYS_PTRACE 19
#define SYSLOG     34

/* Symbols of one processor's variables are at 0 and above, in some 100 KB at the start. */
#define KALLSYMS_SIZE ((size_t)1 << 20)

/* Most files that are looked at in a directory of debug files, and in the cache. */
#define MAX_FILES 100000
#define MAX_DEPTH 12

/* Milliseconds for each debuginfod server, and most servers that are asked. */
#define SERVER_MS   2000
#define MAX_SERVERS 8

/* Reads at most @cap - 1 bytes of the file at @path as text. Returns their number; -1: none. */
static ssize_t read_text(const char *path, char *text, size_t cap)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	ssize_t more = 1;

	if (fd < 0)
		return -1;
	while (more > 0 && (size_t)n < cap - 1) {
		more = read(fd, text + n, cap - 1 - (size_t)n);
		n += more > 0 ? more : 0;
	}
	(void)close(fd);
	text[n] = '\0';
	return more < 0 && !n ? -1 : n;
}

/* Returns the number in the file at @path, a setting of the kernel; @none if it has none. */
static long read_number(const char *path, long none)
{
	char text[32];
	char *end;
	long value;

	if (read_text(path, text, sizeof text) <= 0)
		return none;
	value = strtol(text, &end, 10);
	return end == text ? none : value;
}

/* Returns whether this process has the capability with number @bit. */
static bool has_capability(unsigned bit)
{
	static const char label[] = "\nCapEff:";
	char text[8192];
	const char *line;

	if (read_text("/proc/self/status", text, sizeof text) <= 0)
		return geteuid() == 0;
	line = strstr(text, label);
	return line && strtoull(line + sizeof label - 1, NULL, 16) >> bit & 1;
}

/* Returns whether the users of this process are all that the machine has (user_namespaces(7)). */
static bool has_all_users(void)
{
	char text[128];
	unsigned long long first, outside, count;

	/* Kernels without such namespaces have no such file. */
	if (read_text("/proc/self/uid_map", text, sizeof text) <= 0 ||
	    sscanf(text, "%llu %llu %llu", &first, &outside, &count) != 3)
		return true;
	return !first && !outside && count == UINT32_MAX;
}

static void check_processes(struct doctor *d)
{
	static const char check[] = "processes";

	if (access("/proc/self", F_OK))
		doctor_limited(d, check, "mount -t proc proc /proc",
			       "/proc is not mounted: none is seen");
	else if (access("/proc/1/stat", R_OK))
		doctor_limited(d, check, "run as root, or mount /proc without hidepid",
			       "/proc hides those of other users");
	else if (!has_capability(SYS_PTRACE))
		doctor_limited(d, check, "run as root, or with CAP_SYS_PTRACE",
			       "only those of this user");
	else if (!has_all_users())
		doctor_limited(d, check, "run outside of it", "only those of this user namespace");
	else
		doctor_ok(d, check, "those of all users");
}

const char *doctor_attach_remedy(const struct fathom_errinfo *info)
{
	switch (info->cause) {
	case FATHOM_CAUSE_YAMA:
		return read_number("/proc/sys/kernel/yama/ptrace_scope", 1) > 2
			       ? "mode 3 stays until the machine is started anew"
			       : "run as root, or sysctl kernel.yama.ptrace_scope=0";
	case FATHOM_CAUSE_FILTERED:
		return "run outside of the container, or allow ptrace there";
	case FATHOM_CAUSE_OTHER_USER:
		return "run as that user or as root";
	case FATHOM_CAUSE_MORE_RIGHTS:
		return "run as root";
	default:
		return "end the process that traces it";
	}
}

static void check_tracing(struct doctor *d)
{
	struct fathom_errinfo info;

	if (fathom_attach_check(NULL, &info))
		doctor_limited(d, "tracing", doctor_attach_remedy(&info), "%s", info.what);
	else
		doctor_ok(d, "tracing", "processes may be attached to");
}

/* Returns whether @text, lines of /proc/kallsyms, has an address that is not 0. */
static bool has_address(const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
		if (strtoull(line, NULL, 16))
			return true;
	return false;
}

/* Says why the kernel hides its addresses: kallsyms_show_value() of kernel/ksyms_common.c. */
static void explain_kernel_names(struct doctor *d)
{
	static const char check[] = "kernel-names";
	static const char as_root[] = "run as root, or with CAP_SYSLOG";
	const long restricted = read_number("/proc/sys/kernel/kptr_restrict", 0);
	const long paranoid = read_number("/proc/sys/kernel/perf_event_paranoid", 2);

	if (restricted > 1)
		doctor_limited(d, check,
			       has_capability(SYSLOG)
				       ? "sysctl kernel.kptr_restrict=1"
				       : "sysctl kernel.kptr_restrict=1, and run as root",
			       "kernel.kptr_restrict is %ld", restricted);
	else if (restricted == 1)
		doctor_limited(d, check, as_root, "kernel.kptr_restrict is 1");
	else if (paranoid > 1 && !has_capability(SYSLOG))
		doctor_limited(d, check, "run as root, or sysctl kernel.perf_event_paranoid=1",
			       "kernel.perf_event_paranoid is %ld", paranoid);
	else
		doctor_limited(d, check, as_root, "/proc/kallsyms shows no addresses");
}

static void check_kernel_names(struct doctor *d)
{
	char *text = must(malloc(KALLSYMS_SIZE));
	const ssize_t n = read_text("/proc/kallsyms", text, KALLSYMS_SIZE);

	if (n < 0)
		doctor_limited(d, "kernel-names", "run as root, on a kernel with CONFIG_KALLSYMS",
			       "/proc/kallsyms: %s", strerror(errno));
	else if (!has_address(text))
		explain_kernel_names(d);
	else
		doctor_ok(d, "kernel-names", "/proc/kallsyms shows addresses");
	free(text);
}

static void check_kernel_memory(struct doctor *d)
{
	static const char check[] = "kernel-memory";
	const int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)close(fd);
		doctor_ok(d, check, "/proc/kcore can be read");
	} else if (errno == ENOENT) {
		doctor_limited(d, check, "it takes CONFIG_PROC_KCORE", "there is no /proc/kcore");
	} else {
		doctor_limited(d, check,
			       geteuid() ? "run as root"
					 : "run with CAP_SYS_RAWIO, without kernel lockdown",
			       "/proc/kcore: %s", strerror(errno));
	}
}

/* Returns why nothing can be written to the directory @path, which may not be there yet: errno. */
static int writing_fails(const char *path)
{
	char parent[PATH_MAX];
	struct stat st;
	char *slash;

	if (strlen(path) >= sizeof parent)
		return ENAMETOOLONG;
	(void)strcpy(parent, path);
	while (stat(parent, &st)) {
		slash = strrchr(parent, '/');
		if (errno != ENOENT)
			return errno;
		if (!slash || slash == parent)
			(void)strcpy(parent, slash ? "/" : ".");
		else
			*slash = '\0';
	}
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	return access(parent, W_OK | X_OK) ? errno : 0;
}

/* Returns the bytes of the files in the directory @path. */
static uint64_t size_of_files(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	uint64_t size = 0;
	struct stat st;

	if (!dir)
		return 0;
	for (int i = 0; i < MAX_FILES && (entry = readdir(dir)) != NULL; i++)
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode))
			size += (uint64_t)st.st_size;
	(void)closedir(dir);
	return size;
}

static void check_cache(struct doctor *d)
{
	const char *dir = fathom_cache_dir(d->session);
	int number;

	if (d->common->options.flags & FATHOM_NO_CACHE) {
		doctor_print(d, &(struct doctor_line){ "cache", DOCTOR_OFF, "--no-cache is given",
						       NULL, NULL });
		return;
	}
	if (!dir) {
		doctor_limited(d, "cache", common_cache_remedy(d->common),
			       "there is no directory for it");
		return;
	}
	number = writing_fails(dir);
	if (number)
		doctor_limited(d, "cache", "name another directory with --cache-dir", "%s: %s", dir,
			       strerror(number));
	else
		doctor_ok(d, "cache", "%s: %" PRIu64 " KiB", dir, size_of_files(dir) / 1024);
}

/* Returns whether there is a file below the directory @path, or more than *@left other entries. */
static bool has_files(const char *path, int depth, int *left)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	char below[PATH_MAX];
	bool has = false;
	struct stat st;

	while (dir && !has && (entry = readdir(dir)) != NULL) {
		has = --*left < 0;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >=
			    (int)sizeof below)
			continue;
		has |= S_ISREG(st.st_mode) ||
		       (S_ISDIR(st.st_mode) && depth && has_files(below, depth - 1, left));
	}
	if (dir)
		(void)closedir(dir);
	return has;
}

static void check_debug_dir(struct doctor *d, const char *dir)
{
	static const char check[] = "debug-files";
	static const char remedy[] = "install debug packages, or try --debuginfod";
	const char *sysroot = d->common->where.sysroot ? d->common->where.sysroot : "";
	char path[PATH_MAX];
	int left = MAX_FILES;

	if (snprintf(path, sizeof path, "%s%s", sysroot, dir) >= (int)sizeof path)
		doctor_limited(d, check, NULL, "%s: its path is too long", dir);
	else if (access(path, R_OK | X_OK))
		doctor_limited(d, check, errno == ENOENT ? remedy : "run as a user who may read it",
			       "%s: %s", path, strerror(errno));
	else if (!has_files(path, MAX_DEPTH, &left))
		doctor_limited(d, check, remedy, "%s is empty", path);
	else
		doctor_ok(d, check, "%s has some", path);
}

static void check_debug_dirs(struct doctor *d)
{
	if (!d->common->n_debug_dirs)
		check_debug_dir(d, "/usr/lib/debug");
	for (size_t i = 0; i < d->common->n_debug_dirs; i++)
		check_debug_dir(d, d->common->debug_dirs[i]);
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Creates a session that asks within the time for one server, asks by it, and destroys it. */
static fathom_err ask_servers(uint32_t ms, struct fathom_errinfo *reterr)
{
	struct fathom_options options = { .size = sizeof options, .debuginfod_timeout_ms = ms };
	struct fathom *session;
	fathom_err err;

	progress_show(&options);
	progress_catch_interrupt(&options);
	err = fathom_create(&options, &session, reterr);
	if (err)
		return err;
	err = fathom_debuginfod_check(session, reterr);
	fathom_destroy(session);
	return err;
}

static void check_server(struct doctor *d, const char *url)
{
	static const char check[] = "debuginfod";
	static const char remedy[] = "take it out of DEBUGINFOD_URLS, or check the network";
	const uint32_t given = d->common->options.debuginfod_timeout_ms;
	const uint32_t ms = given ? given : SERVER_MS;
	const int64_t begun = now_ms();
	struct fathom_errinfo info;
	fathom_err err;

	/* libdebuginfod takes its servers only from the environment. */
	(void)setenv("DEBUGINFOD_URLS", url, 1);
	err = ask_servers(ms, &info);
	if (!err)
		doctor_ok(d, check, "%s answers, in %" PRId64 " ms", url, now_ms() - begun);
	else if (err == FATHOM_E_TIMEOUT)
		doctor_limited(d, check, remedy, "%s: no answer in %g s", url, ms / 1000.);
	else
		doctor_limited(d, check, remedy, "%s: %s", url,
			       err == FATHOM_E_OS && info.os_errno ? strerror(info.os_errno)
								   : info.what);
}

/* Sets the variable @name to @value; NULL: takes it out of the environment. */
static void set_variable(const char *name, const char *value)
{
	if (value)
		(void)setenv(name, value, 1);
	else
		(void)unsetenv(name);
}

/* For nftw(3): removes what a folder holds, and it. */
static int remove_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

/* Creates a folder for files of some moments; the caller frees its path. NULL: it cannot be. */
static char *make_folder(void)
{
	const char *where = fathom_secure_getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/fathom-servers-XXXXXX", where && *where ? where : P_tmpdir) < 0)
		must(NULL);
	if (mkdtemp(path))
		return path;
	free(path);
	return NULL;
}

/* Asks each server of @urls, which libdebuginfod separates at blanks. */
static void check_servers(struct doctor *d, const char *urls)
{
	static const char cache[] = "DEBUGINFOD_CACHE_PATH";
	const char *path = fathom_secure_getenv(cache);
	char *old_path = path ? must(strdup(path)) : NULL;
	char *old_urls = must(strdup(urls));
	char *list = must(strdup(urls));
	char *folder = make_folder();
	char *rest = list;
	const char *url;
	int n = 0;

	/* Nobody needs what libdebuginfod notes about the file that is asked for. */
	if (folder)
		(void)setenv(cache, folder, 1);
	while ((url = strsep(&rest, " ")) != NULL && n < MAX_SERVERS)
		if (*url) {
			check_server(d, url);
			n++;
		}
	set_variable("DEBUGINFOD_URLS", old_urls);
	set_variable(cache, old_path);
	if (folder)
		(void)nftw(folder, remove_file, 16, FTW_PHYS | FTW_DEPTH);
	free(folder);
	free(list);
	free(old_urls);
	free(old_path);
}

static void check_debuginfod(struct doctor *d, bool has_client)
{
	static const char check[] = "debuginfod";
	const char *urls = fathom_secure_getenv("DEBUGINFOD_URLS");

	if (!urls || !urls[strspn(urls, " ")])
		doctor_print(d, &(struct doctor_line){ check, DOCTOR_OFF,
						       "no server in DEBUGINFOD_URLS",
						       "set it, for --debuginfod", NULL });
	else if (has_client)
		check_servers(d, urls);
}

/* Prints that the library of @f is missing. */
static void print_missing(struct doctor *d, const struct fathom_feature *f)
{
	const bool is_built = f->state == FATHOM_FEATURE_NOT_INSTALLED;
	char remedy[64];

	(void)snprintf(remedy, sizeof remedy, "%s %s", is_built ? "install" : "build with",
		       f->library);
	doctor_limited(d, "libraries", remedy, "%s: %s, for %s", f->name,
		       is_built ? "not installed" : "not in this build", f->use);
}

/* Checks the optional libraries. Returns whether debuginfod servers can be asked. */
static bool check_libraries(struct doctor *d)
{
	struct fathom_feature f = { .size = sizeof f };
	char ready[256] = "";
	bool has_client = false;

	for (size_t i = 0; fathom_feature_get(i, &f); i++) {
		const size_t used = strlen(ready);

		if (f.state != FATHOM_FEATURE_READY) {
			print_missing(d, &f);
			continue;
		}
		has_client |= strcmp(f.name, "debuginfod") == 0;
		(void)snprintf(ready + used, sizeof ready - used, "%s%s", used ? " " : "", f.name);
	}
	if (*ready)
		doctor_ok(d, "libraries", "%s", ready);
	return has_client;
}

static void check_memory(struct doctor *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		doctor_ok(d, "memory", "files of any size can be mapped");
	else
		doctor_limited(d, "memory", "ulimit -v unlimited",
			       "RLIMIT_AS is %" PRIu64 " MiB: no larger files",
			       (uint64_t)limit.rlim_cur >> 20);
}

void doctor_check_machine(struct doctor *d)
{
	check_processes(d);
	check_tracing(d);
	check_kernel_names(d);
	check_kernel_memory(d);
	check_memory(d);
	check_cache(d);
	check_debug_dirs(d);
	check_debuginfod(d, check_libraries(d));
}
