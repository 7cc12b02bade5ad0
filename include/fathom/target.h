/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Targets: what questions are asked about: files, processes, the kernel.
 */
#ifndef FATHOM_TARGET_H
#define FATHOM_TARGET_H

#include <fathom/error.h>
#include <fathom/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A target. Opaque, counted: whoever acquires it releases it. */
struct fathom_target;

/** Options of opening a target, whatever its kind; as struct fathom_options. */
struct fathom_target_options {
	size_t size;
	uint32_t flags; /**< none yet: 0 */
	uint32_t reserved1;
	/** Path of the program that a core or snapshot is of; default: the one that it names. */
	const char *exe;
	/**
	 * Prepended to absolute paths of debug files, and tried before those of the files that a
	 * core or snapshot names; default: none.
	 */
	const char *sysroot;
	/** Directories with debug files, NULL-terminated; default: "/usr/lib/debug". */
	const char *const *debug_dirs;
	/** Of the kernel, the directory that stands for "/": of /proc, /sys and all files. */
	const char *root;
	uint64_t reserved[4];
};

/**
 * Opens the ELF file at @path (an executable, shared library, object or kernel module, debug file,
 * core; also compressed as .gz, .xz, .zst or .lz4) and finds the debug files that belong to it: by
 * build-id, by .gnu_debuglink, and from debuginfod when the session asks for that.
 *
 * Of a core, the kernel's or gcore's, addresses are those of the process that left it. The files
 * that it had mapped are looked for where it says, below the sysroot of @options first, and must be
 * those that were mapped: first page and build-id as in the core's memory or, without a build-id,
 * all of their code. Where that cannot be told, they are not used. Else what is of them in the
 * core's memory has to do, with debug files that have its build-id. What had to be done without is
 * a note. The same is done with what fathom_snapshot_write() wrote.
 *
 * A debug file that does not match is refused, which fathom_target_note() reports; the target opens
 * all the same.
 *
 * Files are mapped. Like any mapping, one that another program truncates while it is in use raises
 * SIGBUS. If files may be truncated in place, call fathom_handle_sigbus() from a handler of that
 * signal, or open copies.
 *
 * @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_target is the caller's, to be given back with fathom_target_release(); it keeps
 *	@session until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know;
 *	FATHOM_E_TIMEOUT when its file system does not answer (file_timeout_ms of the
 *	session); FATHOM_E_OS, FATHOM_E_FORMAT, FATHOM_E_CORRUPT, FATHOM_E_LIMIT or
 *	FATHOM_E_MEMORY, with the file named in *@reterr (which may be NULL)
 */
FATHOM_API fathom_err fathom_target_open_file(struct fathom *session, const char *path,
					      const struct fathom_target_options *options,
					      struct fathom_target **ret_target,
					      struct fathom_errinfo *reterr);

/**
 * Opens process @pid, as it is known where this program runs. Each batch reads its memory map anew,
 * so that its answers are true of the process as it was between question and answer; what it has
 * mapped is read from the very files, also when they are deleted or replaced, or where that is not
 * ours to do, from files with the same build-id and first page, or from its memory. What had to be
 * done without is a note. Code that the process has made itself is named by GDB's JIT interface,
 * else by a jitdump that it has mapped, else by its perf map. Other memory that is not of a loaded
 * program has no names.
 *
 * The process is not stopped. The target keeps one descriptor, of its directory below /proc: when
 * the process has ended, no other that gets its number takes its place.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_OS when there is no such process, or it is not ours to look at: the
 *	cause in *@reterr says why; FATHOM_E_NOT_FOUND when it has no memory: a kernel thread, or it
 *	has ended; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_process(struct fathom *session, int pid,
						 const struct fathom_target_options *options,
						 struct fathom_target **ret_target,
						 struct fathom_errinfo *reterr);

/**
 * Opens the calling process, as it is at each call: after fork(), the child. Its map is read from
 * /proc/self, its memory in place. For names in signal handlers, see fathom_self_prepare().
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_MEMORY. Questions fail with FATHOM_E_OS where /proc is not mounted
 */
FATHOM_API fathom_err fathom_target_open_self(struct fathom *session,
					      const struct fathom_target_options *options,
					      struct fathom_target **ret_target,
					      struct fathom_errinfo *reterr);

/** A range of addresses that something is mapped to. */
struct fathom_mapping_info {
	uint64_t start;
	uint64_t end;            /**< behind the last byte */
	uint64_t offset;         /**< of @start in the file */
	const char *path;        /**< of the file; "[vdso]"; NULL or "": no file is behind it */
	const uint8_t *build_id; /**< of the file, where the caller knows it; else NULL */
	uint32_t build_id_size;  /**< bytes */
	uint32_t rights;         /**< PF_ of elf.h */
};

/** An address space that the caller can read: a minidump, an emulator, a remote machine. */
struct fathom_address_space {
	size_t size; /**< sizeof(struct fathom_address_space) */
	/**
	 * Reads up to @size bytes at @address into @to; returns how many could be read, from the
	 * start. Called by the threads that ask about the target, several at once if they do.
	 */
	size_t (*read)(void *data, uint64_t address, void *to, size_t size);
	void *data;
	const struct fathom_mapping_info *mappings; /**< by address, none over another */
	size_t n_mappings;
	uint64_t page_size; /**< bytes, a power of two; 0: 4096 */
	uint64_t entry;     /**< where the program started (AT_ENTRY); 0: not known */
	int32_t pid;        /**< 0: not known */
	uint32_t flags;     /**< none yet: 0 */
	uint64_t reserved[4];
};

/**
 * Opens an address space of the caller's own. The mappings stay as they are; memory may change.
 * Files are looked for where the mappings say, below the sysroot of @options first, and must be
 * those that are mapped: first page and build-id as in memory, or without a build-id all of the
 * code; or the build-id of the mapping, where memory cannot tell. Else the image in memory answers,
 * with debug files that have its build-id. What had to be done without is a note. Names of JIT code
 * come from GDB's JIT interface.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file(); mappings and texts are copied, @space->data is the caller's
 *	and is used until the target is gone
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT without read() or mappings, for mappings out of order, for
 *a page size that is none, or for fields that this version does not know; FATHOM_E_LIMIT for more
 *mappings than fathom reads; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_reader(struct fathom *session,
						const struct fathom_address_space *space,
						const struct fathom_target_options *options,
						struct fathom_target **ret_target,
						struct fathom_errinfo *reterr);

/**
 * Opens the running kernel, of which addresses are what it has them at now, wherever it was loaded.
 * @options may be NULL.
 *
 * Its symbols are those of /proc/kallsyms. The debug information of the image is found by the
 * build-id of /sys/kernel/notes: as .build-id, boot/vmlinux-RELEASE and lib/modules/RELEASE/vmlinux
 * in the directories of debug files, as the latter two below the root, as
 * /lib/modules/RELEASE/build/vmlinux, and from debuginfod when the session asks for that. Files of
 * modules are found by modules.dep, or by their build-id, and matched with that of /sys/module. A
 * file of another build is refused, which is a note; what has no file is named all the same.
 *
 * A kernel that shows its addresses to privileged users only opens; its answers say
 * FATHOM_REASON_NO_PERMISSION.
 *
 * Modules come and go. Each batch is true of those that were loaded between question and answer.
 *
 * Safety: mt-safe
 * Memory: as fathom_target_open_file()
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know; FATHOM_E_OS
 *	without /proc/kallsyms; FATHOM_E_NOT_FOUND when it has no _text; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_target_open_kernel(struct fathom *session,
						const struct fathom_target_options *options,
						struct fathom_target **ret_target,
						struct fathom_errinfo *reterr);

/**
 * Tells whether the files that @target reads are what they were when they were opened. A file that
 * another program has truncated or overwritten since then may have given wrong answers: where that
 * can happen, call this behind a batch and before its answers are used. (One that was replaced by
 * rename(), as linkers and package managers do, is still read as it was.) Costs one stat() for each
 * file; split debug files (.dwo) are not looked at. Files of a process are, at the start of each
 * batch.
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
 * Memory: the reference is given back with fathom_target_release()
 * Returns: @target
 */
FATHOM_API struct fathom_target *fathom_target_acquire(struct fathom_target *target);

/**
 * Gives a reference back; the last one closes the target. @target may be NULL.
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

/** What a target is. Strings and bytes belong to the target. */
struct fathom_target_info {
	/**
	 * As it was opened; of a process its executable, "" if not known; "[kernel]", "[reader]"
	 */
	const char *path;
	/**
	 * Where its debug information is; NULL when there is none, or, of the kernel, none was
	 * needed yet.
	 */
	const char *debug_path;
	const uint8_t *build_id; /**< NULL without one */
	uint32_t build_id_size;  /**< bytes */
	uint16_t elf_type;       /**< ET_ of elf.h; this and what follows: of a file only */
	uint16_t elf_machine;    /**< EM_ of elf.h */
	uint8_t is_64bit;        /**< 1 or 0 */
	uint8_t is_relocatable;  /**< its addresses are offsets in sections */
	uint8_t kind;            /**< enum fathom_target_kind */
	uint8_t reserved;
	int32_t pid;         /**< of the process that it is or was; 0: none, or not known */
	const char *command; /**< of what ran: the program's name, cut to 15 bytes; else NULL */
};

/**
 * Safety: mt-safe
 * Memory: writes *@ret_info; what it points to lives as long as @target
 * Returns: nothing
 */
FATHOM_API void fathom_target_get_info(const struct fathom_target *target,
				       struct fathom_target_info *ret_info);

/**
 * What went wrong so far that no single answer can tell in full: a debug file that was refused,
 * a damaged section with its offset, a limit that was met. Notes are only added, and the same one
 * only once.
 *
 * Safety: mt-safe
 * Memory: the note lives as long as @target
 * Returns: note number @i, counted from 0; NULL when there are not so many
 */
FATHOM_API const struct fathom_errinfo *fathom_target_note(const struct fathom_target *target,
							   size_t i);

/**
 * Translates @offset, counted from the start of the section called @name, into the address that
 * fathom_symbolize() takes.
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
	const char *name; /**< "" where it is damaged */
	uint64_t address; /**< what fathom_symbolize() takes for its first byte */
	uint64_t size;    /**< bytes in memory */
	uint64_t flags;   /**< SHF_ of elf.h */
	uint32_t type;    /**< SHT_ of elf.h */
	uint32_t reserved;
};

/**
 * Section @i, counted as the file counts: number 0 is none that holds anything.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_section
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND behind the last one
 */
FATHOM_API fathom_err fathom_target_section(const struct fathom_target *target, size_t i,
					    struct fathom_section_info *ret_section);

/**
 * Reads up to @size bytes at @address into @to: of a process from its memory; of a core, too, and
 * what it leaves out from the files that were mapped, where they were not writable, which is all
 * that there is of a snapshot; of a file what it has for an address as stated in it (in a
 * relocatable file: that fathom_target_section_address() gives), before any relocation, and zeros
 * where it only states that there is room (.bss); of the kernel through /proc/kcore, which shows
 * zeros where it has no page. Less than @size is read where memory ends.
 *
 * Safety: mt-safe
 * Memory: writes at most @size bytes to @to, and their number, 0 only where @size is, to *@ret_size
 * Returns: FATHOM_OK when there was anything to read; FATHOM_E_NOT_FOUND when nothing is there, as
 *	of the code of a debug file; FATHOM_E_OS, of the kernel with what helps; FATHOM_E_TIMEOUT
 *	for memory of a file, which is named, whose file system does not answer;
 *	FATHOM_E_CORRUPT for a /proc/kcore that is no core file
 */
FATHOM_API fathom_err fathom_target_read(struct fathom_target *target, uint64_t address, void *to,
					 size_t size, size_t *ret_size,
					 struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
