/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Targets: the files, processes, cores and kernels that questions are about.
 */
#ifndef FATHOM_TARGET_H
#define FATHOM_TARGET_H

#include <fathom/error.h>
#include <fathom/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A target. Opaque and reference-counted. */
struct fathom_target;

/** Bits of fathom_target_options.flags. */
enum fathom_target_flag {
	/**
	 * Of a core or snapshot: use files at the right paths that nothing proves to be those that
	 * were mapped, as long as nothing proves the contrary. Answers of them say so
	 * (fathom_module_info.is_unverified).
	 */
	FATHOM_TARGET_UNVERIFIED_FILES = 1u << 0
};

/** Options for opening a target of any kind; as struct fathom_options. */
struct fathom_target_options {
	size_t size;
	uint32_t flags; /**< enum fathom_target_flag */
	uint32_t reserved1;
	/** Path of the program of a core or snapshot; default: the path in the core. */
	const char *exe;
	/**
	 * Directory prepended to absolute paths of debug files, and tried first for the files that
	 * a core or snapshot names; default: none.
	 */
	const char *sysroot;
	/** Directories with debug files, NULL-terminated; default: "/usr/lib/debug". */
	const char *const *debug_dirs;
	/** For the kernel: the directory that stands for "/", of /proc, /sys and all files. */
	const char *root;
	uint64_t reserved[4];
};

/**
 * Opens the ELF file at @path (an executable, shared library, object, kernel module, debug file or
 * core; also compressed as .gz, .xz, .zst or .lz4) and finds its debug files: by build-id, by
 * .gnu_debuglink, and from debuginfod if the session enables that.
 *
 * The addresses of a core, of the kernel or gcore, are those of the dumped process. Mapped files
 * are opened by the paths in the core, first below the sysroot of @options, and verified: first
 * page and build-id must be as in the core's memory or, without a build-id, all of their code. A
 * file that cannot be verified is not used unless FATHOM_TARGET_UNVERIFIED_FILES is set; its
 * image in the core's memory serves instead, with debug files of its build-id. A note says what
 * is missing. Snapshots of fathom_snapshot_write() are treated the same.
 *
 * A debug file that does not match is refused, and fathom_target_note() reports it; the target
 * still opens.
 *
 * Files are memory-mapped, so one that another program truncates while it is in use raises SIGBUS.
 * If files may be truncated in place, call fathom_handle_sigbus() from a handler of that signal, or
 * open copies.
 *
 * @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_target is the caller's, to be released with fathom_target_release(); it keeps
 *	@session until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know;
 *	FATHOM_E_TIMEOUT when its file system does not answer (fathom_options.file_timeout_ms);
 *	FATHOM_E_OS, FATHOM_E_FORMAT, FATHOM_E_CORRUPT, FATHOM_E_LIMIT or FATHOM_E_MEMORY, with the
 *	file named in *@reterr (which may be NULL)
 */
FATHOM_API fathom_err fathom_target_open_file(struct fathom *session, const char *path,
					      const struct fathom_target_options *options,
					      struct fathom_target **ret_target,
					      struct fathom_errinfo *reterr);

/**
 * Opens process @pid, a number in the caller's PID namespace. Each batch reads the memory map
 * anew, so its answers hold for the process as it was during the call. Mapped files are read
 * through the mappings themselves, even if deleted or replaced; without permission for that, from
 * files with the same build-id and first page, or from memory. A note says what is missing. JIT
 * code is named by what <fathom/jit.h> publishes, else by GDB's JIT interface, else by a jitdump
 * that the process has mapped, else by its perf map. Other anonymous memory has no names.
 *
 * The process is not stopped. The target keeps one descriptor, of the /proc directory, so a later
 * process with the same number is never mistaken for it.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_OS when there is no such process, or no permission: the cause in
 *	*@reterr says why; FATHOM_E_NOT_FOUND when it has no memory (a kernel thread, or a process
 *	that has ended); FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_process(struct fathom *session, int pid,
						 const struct fathom_target_options *options,
						 struct fathom_target **ret_target,
						 struct fathom_errinfo *reterr);

/**
 * Opens the calling process, as it is at each call: after fork(), the child. Reads the map from
 * /proc/self, and memory directly. For names in signal handlers, see fathom_self_prepare().
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_MEMORY. Queries fail with FATHOM_E_OS if /proc is not mounted
 */
FATHOM_API fathom_err fathom_target_open_self(struct fathom *session,
					      const struct fathom_target_options *options,
					      struct fathom_target **ret_target,
					      struct fathom_errinfo *reterr);

/** One mapping of an address space. */
struct fathom_mapping_info {
	uint64_t start;
	uint64_t end;            /**< after the last byte */
	uint64_t offset;         /**< of start in the file */
	const char *path;        /**< of the file; "[vdso]"; NULL or "": anonymous */
	const uint8_t *build_id; /**< of the file, if the caller knows it; else NULL */
	uint32_t build_id_size;  /**< bytes */
	uint32_t rights;         /**< PF_ of elf.h */
};

/** An address space that the caller can read: a minidump, an emulator, a remote machine. */
struct fathom_address_space {
	size_t size; /**< sizeof(struct fathom_address_space) */
	/**
	 * Reads up to @size bytes at @address into @to and returns how many could be read, from the
	 * start. Called on the threads that query the target, concurrently if they do.
	 */
	size_t (*read)(void *data, uint64_t address, void *to, size_t size);
	void *data;
	const struct fathom_mapping_info *mappings; /**< sorted by address, not overlapping */
	size_t n_mappings;
	uint64_t page_size; /**< bytes, a power of two; 0: 4096 */
	uint64_t entry;     /**< where the program started (AT_ENTRY); 0: not known */
	int32_t pid;        /**< 0: not known */
	uint32_t flags;     /**< none yet: 0 */
	uint64_t reserved[4];
};

/**
 * Opens an address space that the caller provides. The mappings are fixed; memory may change. Files
 * are opened by the paths of the mappings, first below the sysroot of @options, and verified: first
 * page and build-id must be as in memory or, without a build-id, all of the code; if memory cannot
 * tell, the build-id of the mapping decides. A file that cannot be verified is replaced by its
 * image in memory, with debug files of its build-id. A note says what is missing. Names of JIT code
 * come from GDB's JIT interface.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file(); mappings and texts are copied; @space->data is the caller's
 *	and is used until the target is freed
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT without read() or mappings, for unsorted mappings, for an
 *	invalid page size, or for fields that this version does not know; FATHOM_E_LIMIT for more
 *	mappings than fathom reads; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_reader(struct fathom *session,
						const struct fathom_address_space *space,
						const struct fathom_target_options *options,
						struct fathom_target **ret_target,
						struct fathom_errinfo *reterr);

/**
 * Opens the running kernel; addresses are the current ones, wherever it was loaded. @options may be
 * NULL.
 *
 * Its symbols come from /proc/kallsyms. The debug information of the image must have the build-id
 * of /sys/kernel/notes. It is looked for in .build-id, boot/vmlinux-RELEASE and
 * lib/modules/RELEASE/vmlinux of the debug directories, in the latter two below the root, in
 * /lib/modules/RELEASE/build/vmlinux, and from debuginfod if the session enables that. Module files
 * are found by modules.dep or by their build-id, and verified by the build-id in /sys/module. A
 * file of another build is refused, and a note says so; code without a file still has names.
 *
 * A kernel that shows its addresses to privileged users only can be opened; its answers have
 * FATHOM_REASON_NO_PERMISSION.
 *
 * Each batch holds for the modules that were loaded during the call.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know; FATHOM_E_OS
 *	without /proc/kallsyms; FATHOM_E_NOT_FOUND when that has no _text; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_kernel(struct fathom *session,
						const struct fathom_target_options *options,
						struct fathom_target **ret_target,
						struct fathom_errinfo *reterr);

/**
 * Checks that the files of @target have not changed since they were opened. A file that another
 * program truncated or overwrote since then may have given wrong answers: if that can happen, call
 * this after a batch, before you use its answers. (A file replaced by rename(), as linkers and
 * package managers do, is still read as it was.) Costs one stat() per file. Split debug files
 * (.dwo) are not checked; files of a process are checked at the start of each batch.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_CHANGED, with the file named in *@reterr (which may be NULL)
 */
FATHOM_API fathom_err fathom_target_check(const struct fathom_target *target,
					  struct fathom_errinfo *reterr);

/**
 * Takes another reference to @target.
 *
 * Safety: mt-safe
 * Memory: release the reference with fathom_target_release()
 * Returns: @target
 */
FATHOM_API struct fathom_target *fathom_target_acquire(struct fathom_target *target);

/**
 * Releases a reference to @target, which may be NULL; the last one closes the target.
 *
 * Safety: mt-safe
 * Memory: frees the target with its last reference; answers made from it stay valid
 * Returns: nothing
 */
FATHOM_API void fathom_target_release(struct fathom_target *target);

/** Kinds of targets. */
enum fathom_target_kind {
	FATHOM_TARGET_FILE = 0,
	FATHOM_TARGET_PROCESS = 1,
	FATHOM_TARGET_CORE = 2,
	FATHOM_TARGET_SNAPSHOT = 3,
	FATHOM_TARGET_KERNEL = 4,
	FATHOM_TARGET_SELF = 5,  /**< the calling process */
	FATHOM_TARGET_READER = 6 /**< of fathom_target_open_reader() */
};

/** Description of a target. Strings and bytes belong to the target. */
struct fathom_target_info {
	/** as opened; of a process its executable, "" if not known; "[kernel]", "[reader]" */
	const char *path;
	/**
	 * file with the debug information; NULL if there is none or, of the kernel, none was needed
	 * yet
	 */
	const char *debug_path;
	const uint8_t *build_id; /**< NULL without one */
	uint32_t build_id_size;  /**< bytes */
	uint16_t elf_type;       /**< ET_ of elf.h; files only */
	uint16_t elf_machine;    /**< EM_ of elf.h; files only */
	uint8_t is_64bit;        /**< 1 or 0 */
	uint8_t is_relocatable;  /**< 1: addresses are offsets in sections; files only */
	uint8_t kind;            /**< enum fathom_target_kind */
	uint8_t reserved;
	int32_t pid;         /**< of the live or dumped process; 0: none, or not known */
	const char *command; /**< the process's program name, cut to 15 bytes; else NULL */
};

/**
 * Safety: mt-safe
 * Memory: writes *@ret_info; what it points to lives as long as @target
 * Returns: nothing
 */
FATHOM_API void fathom_target_get_info(const struct fathom_target *target,
				       struct fathom_target_info *ret_info);

/**
 * Returns a problem met so far that no single answer can tell in full: a refused debug file, a
 * damaged section with its offset, a limit that was reached. Notes are only added, and each only
 * once.
 *
 * Safety: mt-safe
 * Memory: the note lives as long as @target
 * Returns: note number @i, counted from 0; NULL after the last one
 */
FATHOM_API const struct fathom_errinfo *fathom_target_note(const struct fathom_target *target,
							   size_t i);

/**
 * Translates @offset from the start of the section called @name into an address for
 * fathom_symbolize().
 *
 * Safety: mt-safe
 * Memory: writes *@ret_address
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND when there is no such section, or it is not loaded
 */
FATHOM_API fathom_err fathom_target_section_address(const struct fathom_target *target,
						    const char *name, uint64_t offset,
						    uint64_t *ret_address);

/** A section of a file. The name belongs to the target. */
struct fathom_section_info {
	const char *name; /**< "" if it is damaged */
	uint64_t address; /**< of its first byte, as for fathom_symbolize() */
	uint64_t size;    /**< bytes in memory */
	uint64_t flags;   /**< SHF_ of elf.h */
	uint32_t type;    /**< SHT_ of elf.h */
	uint32_t reserved;
};

/**
 * Reads section @i of the file. Section 0 is the null section.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_section
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND after the last one
 */
FATHOM_API fathom_err fathom_target_section(const struct fathom_target *target, size_t i,
					    struct fathom_section_info *ret_section);

/**
 * Reads up to @size bytes at @address into @to; fewer if memory ends earlier.
 *
 * A process is read from its memory, a core likewise. What a core leaves out, and all of a
 * snapshot, is read from the mapped files, except writable mappings. A file is read at an address
 * as for fathom_symbolize(), before relocation, with zeros for .bss. The kernel is read through
 * /proc/kcore, which shows zeros where it has no page.
 *
 * Safety: mt-safe
 * Memory: writes at most @size bytes to @to, and their number to *@ret_size: 0 only if @size is 0
 * Returns: FATHOM_OK when at least one byte was read; FATHOM_E_NOT_FOUND when nothing is there,
 *	such as the code of a debug file; FATHOM_E_OS, for the kernel with the remedy;
 *	FATHOM_E_TIMEOUT, naming the file, when its file system does not answer; FATHOM_E_CORRUPT
 *	when /proc/kcore is not a core file
 */
FATHOM_API fathom_err fathom_target_read(struct fathom_target *target, uint64_t address, void *to,
					 size_t size, size_t *ret_size,
					 struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
