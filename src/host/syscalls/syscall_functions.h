/* SPDX-License-Identifier: MIT */
/*
 * The functions and structs that syscalls.txt names.
 * Made by tools/syscall_tables.py from Debian's linux-source-6.12,
 * version 6.12.117-1~deb12u1.
 */
#ifndef FATHOM_SYSCALLS_CALL_FUNCTIONS_H
#define FATHOM_SYSCALLS_CALL_FUNCTIONS_H

#include "host/syscalls/syscall_types.h"

fathom_decode_fn fathom_decode_rlimit;
fathom_decode_fn fathom_decode_rlimit64;
fathom_decode_fn fathom_decode_name;
fathom_decode_fn fathom_decode_ticks;
fathom_decode_fn fathom_decode_statx_time;
fathom_decode_fn fathom_decode_open_flags;
fathom_decode_fn fathom_decode_open_how_mode;
fathom_decode_fn fathom_decode_in_addr;
fathom_decode_fn fathom_decode_tls_entry;
fathom_decode_fn fathom_decode_tls_flags;
fathom_decode_fn fathom_decode_mount_attributes;
fathom_decode_fn fathom_decode_dev;
fathom_decode_fn fathom_decode_loop_key;
fathom_decode_fn fathom_decode_loop_status;
fathom_decode_fn fathom_decode_socket_address;
fathom_decode_fn fathom_decode_hardware_address;
fathom_decode_fn fathom_decode_uffd_range_requests;
fathom_decode_fn fathom_decode_sigset;
fathom_decode_fn fathom_decode_iovec;
fathom_decode_fn fathom_decode_open_how;
fathom_decode_fn fathom_decode_stat;
fathom_decode_fn fathom_decode_stat64;
fathom_decode_fn fathom_decode_statx_flags;
fathom_decode_fn fathom_decode_link_text;
fathom_decode_fn fathom_decode_utimbuf;
fathom_decode_fn fathom_decode_utimes;
fathom_decode_fn fathom_decode_utimens;
fathom_decode_fn fathom_decode_utimens64;
fathom_decode_fn fathom_decode_argv;
fathom_decode_fn fathom_decode_envp;
fathom_decode_fn fathom_decode_cwd;
fathom_decode_fn fathom_decode_mount_type;
fathom_decode_fn fathom_decode_mount_data;
fathom_decode_fn fathom_decode_swap_flags;
fathom_decode_fn fathom_decode_quota_command;
fathom_decode_fn fathom_decode_xattr_value;
fathom_decode_fn fathom_decode_xattr_result;
fathom_decode_fn fathom_decode_fanotify_mark;
fathom_decode_fn fathom_decode_fanotify_mask;
fathom_decode_fn fathom_decode_fanotify_directory;
fathom_decode_fn fathom_decode_fanotify_init;
fathom_decode_fn fathom_decode_handle;
fathom_decode_fn fathom_decode_fsconfig_key;
fathom_decode_fn fathom_decode_fsconfig_value;
fathom_decode_fn fathom_decode_read_data;
fathom_decode_fn fathom_decode_data;
fathom_decode_fn fathom_decode_position;
fathom_decode_fn fathom_decode_loff_high;
fathom_decode_fn fathom_decode_ioctl_request;
fathom_decode_fn fathom_decode_loff;
fathom_decode_fn fathom_decode_offset;
fathom_decode_fn fathom_decode_offset64;
fathom_decode_fn fathom_decode_dirents32;
fathom_decode_fn fathom_decode_dirents64;
fathom_decode_fn fathom_decode_pollfds;
fathom_decode_fn fathom_decode_polled;
fathom_decode_fn fathom_decode_sigset_sized;
fathom_decode_fn fathom_decode_fdset;
fathom_decode_fn fathom_decode_selected;
fathom_decode_fn fathom_decode_pselect_mask;
fathom_decode_fn fathom_decode_epoll_event;
fathom_decode_fn fathom_decode_epoll_events;
fathom_decode_fn fathom_decode_timespec64;
fathom_decode_fn fathom_decode_memfd_name;
fathom_decode_fn fathom_decode_memfd_flags;
fathom_decode_fn fathom_decode_siginfo;
fathom_decode_fn fathom_decode_ring;
fathom_decode_fn fathom_decode_mq_name;
fathom_decode_fn fathom_decode_sigevent;
fathom_decode_fn fathom_decode_landlock_ruleset;
fathom_decode_fn fathom_decode_mmap_flags;
fathom_decode_fn fathom_decode_pgoff;
fathom_decode_fn fathom_decode_mincore;
fathom_decode_fn fathom_decode_mmap_flags_only;
fathom_decode_fn fathom_decode_mempolicy;
fathom_decode_fn fathom_decode_nodes;
fathom_decode_fn fathom_decode_membarrier_result;
fathom_decode_fn fathom_decode_clone_flags;
fathom_decode_fn fathom_decode_clone_rest;
fathom_decode_fn fathom_decode_clone_args;
fathom_decode_fn fathom_decode_clone_size;
fathom_decode_fn fathom_decode_wait_status;
fathom_decode_fn fathom_decode_wait_rusage;
fathom_decode_fn fathom_decode_wait_siginfo;
fathom_decode_fn fathom_decode_personality;
fathom_decode_fn fathom_decode_personality_result;
fathom_decode_fn fathom_decode_sched_policy;
fathom_decode_fn fathom_decode_affinity;
fathom_decode_fn fathom_decode_ioprio;
fathom_decode_fn fathom_decode_ioprio_in;
fathom_decode_fn fathom_decode_cap_header;
fathom_decode_fn fathom_decode_cap_data;
fathom_decode_fn fathom_decode_syslog_action;
fathom_decode_fn fathom_decode_random;
fathom_decode_fn fathom_decode_tls_result;
fathom_decode_fn fathom_decode_kexec_flags;
fathom_decode_fn fathom_decode_bpf;
fathom_decode_fn fathom_decode_perf_attr;
fathom_decode_fn fathom_decode_key;
fathom_decode_fn fathom_decode_sigaction;
fathom_decode_fn fathom_decode_old_sigaction;
fathom_decode_fn fathom_decode_signal_result;
fathom_decode_fn fathom_decode_rt_sigreturn;
fathom_decode_fn fathom_decode_sigreturn;
fathom_decode_fn fathom_decode_handler;
fathom_decode_fn fathom_decode_old_sigset;
fathom_decode_fn fathom_decode_old_sigset_at;
fathom_decode_fn fathom_decode_remaining;
fathom_decode_fn fathom_decode_timex_state;
fathom_decode_fn fathom_decode_time_result;
fathom_decode_fn fathom_decode_futex_op;
fathom_decode_fn fathom_decode_futex_waitv;
fathom_decode_fn fathom_decode_socket_type;
fathom_decode_fn fathom_decode_socket_protocol;
fathom_decode_fn fathom_decode_sockaddr;
fathom_decode_fn fathom_decode_sockaddr_result;
fathom_decode_fn fathom_decode_length_result;
fathom_decode_fn fathom_decode_socket_flags;
fathom_decode_fn fathom_decode_msghdr;
fathom_decode_fn fathom_decode_mmsghdrs;
fathom_decode_fn fathom_decode_recvmmsg_left;
fathom_decode_fn fathom_decode_socket_level;
fathom_decode_fn fathom_decode_socket_option;
fathom_decode_fn fathom_decode_option_value;
fathom_decode_fn fathom_decode_socketcall_number;
fathom_decode_fn fathom_decode_ipc_number;
fathom_decode_fn fathom_decode_ipc_key;
fathom_decode_fn fathom_decode_shm_get;
fathom_decode_fn fathom_decode_shm_command;
fathom_decode_fn fathom_decode_ipc_get;
fathom_decode_fn fathom_decode_sembufs;
fathom_decode_fn fathom_decode_sem_command;
fathom_decode_fn fathom_decode_msgbuf;
fathom_decode_fn fathom_decode_msg_command;
fathom_decode_fn fathom_decode_blocks;
fathom_decode_fn fathom_decode_fd_flags_result;
fathom_decode_fn fathom_decode_open_flags_result;
fathom_decode_fn fathom_decode_open_flags_only;
fathom_decode_fn fathom_decode_lease_result;
fathom_decode_fn fathom_decode_seals_result;
fathom_decode_fn fathom_decode_termios;
fathom_decode_fn fathom_decode_termios2;
fathom_decode_fn fathom_decode_termio;
fathom_decode_fn fathom_decode_one_byte;
fathom_decode_fn fathom_decode_interface_name;
fathom_decode_fn fathom_decode_ifconf;
fathom_decode_fn fathom_decode_interface;
fathom_decode_fn fathom_decode_dedupe_asked;
fathom_decode_fn fathom_decode_dedupe_done;
fathom_decode_fn fathom_decode_fiemap_found;
fathom_decode_fn fathom_decode_label;
fathom_decode_fn fathom_decode_entropy;
fathom_decode_fn fathom_decode_namespace_type;
fathom_decode_fn fathom_decode_perf_programs;
fathom_decode_fn fathom_decode_uffd_api;
fathom_decode_fn fathom_decode_kvm_cpuids;
fathom_decode_fn fathom_decode_kvm_registers;
fathom_decode_fn fathom_decode_task_name;
fathom_decode_fn fathom_decode_dumpable;
fathom_decode_fn fathom_decode_seccomp_mode;
fathom_decode_fn fathom_decode_seccomp_filter;
fathom_decode_fn fathom_decode_securebits;
fathom_decode_fn fathom_decode_ptracer;
fathom_decode_fn fathom_decode_ambient_cap;
fathom_decode_fn fathom_decode_vma_name;
fathom_decode_fn fathom_decode_timing;
fathom_decode_fn fathom_decode_mce_policy;
fathom_decode_fn fathom_decode_futex_bitset;
fathom_decode_fn fathom_decode_futex_wake_op;
fathom_decode_fn fathom_decode_siginfos;
fathom_decode_fn fathom_decode_register_set_result;
fathom_decode_fn fathom_decode_register_set;
fathom_decode_fn fathom_decode_call_info;
fathom_decode_fn fathom_decode_registers;
fathom_decode_fn fathom_decode_fp_registers;
fathom_decode_fn fathom_decode_user_place;
fathom_decode_fn fathom_decode_shm_status;
fathom_decode_fn fathom_decode_shm_set;
fathom_decode_fn fathom_decode_msg_status;
fathom_decode_fn fathom_decode_msg_set;
fathom_decode_fn fathom_decode_sem_status;
fathom_decode_fn fathom_decode_sem_set;
fathom_decode_fn fathom_decode_sem_value;
fathom_decode_fn fathom_decode_log_text;
fathom_decode_fn fathom_decode_key_text;
fathom_decode_fn fathom_decode_key_data;
fathom_decode_fn fathom_decode_key_error;
fathom_decode_fn fathom_decode_key_default;

/* Types of structs. */
enum {
	FATHOM_TYPE_TIMESPEC = 3,
	FATHOM_TYPE_TIMESPEC64 = 6,
	FATHOM_TYPE_TIMEVAL = 7,
	FATHOM_TYPE_TIMEZONE = 9,
	FATHOM_TYPE_ITIMERSPEC = 10,
	FATHOM_TYPE_ITIMERSPEC64 = 11,
	FATHOM_TYPE_ITIMERVAL = 12,
	FATHOM_TYPE_RUSAGE = 13,
	FATHOM_TYPE_RLIMIT = 15,
	FATHOM_TYPE_RLIMIT64 = 17,
	FATHOM_TYPE_UTSNAME = 19,
	FATHOM_TYPE_SYSINFO = 24,
	FATHOM_TYPE_TIMEX = 29,
	FATHOM_TYPE_TIMEVAL64 = 30,
	FATHOM_TYPE_TIMEX64 = 32,
	FATHOM_TYPE_TMS = 34,
	FATHOM_TYPE_FSID = 37,
	FATHOM_TYPE_STATFS = 41,
	FATHOM_TYPE_STATFS64 = 45,
	FATHOM_TYPE_FLOCK = 48,
	FATHOM_TYPE_FLOCK_IN = 49,
	FATHOM_TYPE_FLOCK64 = 50,
	FATHOM_TYPE_FLOCK64_IN = 51,
	FATHOM_TYPE_OWNER_EX = 54,
	FATHOM_TYPE_STATX_TIMESTAMP = 55,
	FATHOM_TYPE_STATX = 62,
	FATHOM_TYPE_OPEN_HOW = 66,
	FATHOM_TYPE_WINSIZE = 67,
	FATHOM_TYPE_EPOLL_DATA = 68,
	FATHOM_TYPE_FILTER_PLACE = 69,
	FATHOM_TYPE_FILTER_METADATA = 71,
	FATHOM_TYPE_PEEK_SIGINFO = 73,
	FATHOM_TYPE_LINGER = 74,
	FATHOM_TYPE_UCRED = 76,
	FATHOM_TYPE_IN_ADDR = 78,
	FATHOM_TYPE_IP_MREQ = 79,
	FATHOM_TYPE_SCHED_PARAM = 80,
	FATHOM_TYPE_SCHED_PARAM_PLAIN = 81,
	FATHOM_TYPE_SCHED_ATTR = 84,
	FATHOM_TYPE_STACK = 87,
	FATHOM_TYPE_CAP_HEADER = 89,
	FATHOM_TYPE_USER_DESC = 92,
	FATHOM_TYPE_SEMBUF = 95,
	FATHOM_TYPE_SHM_LIMITS = 96,
	FATHOM_TYPE_SHM_USAGE = 97,
	FATHOM_TYPE_MSG_INFO = 98,
	FATHOM_TYPE_SEM_INFO = 99,
	FATHOM_TYPE_FILE_HANDLE = 100,
	FATHOM_TYPE_MOUNT_ATTR = 103,
	FATHOM_TYPE_LANDLOCK_RULESET = 105,
	FATHOM_TYPE_LANDLOCK_PATH = 107,
	FATHOM_TYPE_ROBUST = 108,
	FATHOM_TYPE_KEY_PARAMS = 109,
	FATHOM_TYPE_AIO_EVENT = 110,
	FATHOM_TYPE_MQ_ATTR = 112,
	FATHOM_TYPE_F_UIDS = 113,
	FATHOM_TYPE_SG = 114,
	FATHOM_TYPE_IFCONF = 115,
	FATHOM_TYPE_WAITV = 117,
	FATHOM_TYPE_CACHESTAT_RANGE = 118,
	FATHOM_TYPE_CACHESTAT = 119,
	FATHOM_TYPE_FUTEX_FIELDS = 120,
	FATHOM_TYPE_RTC_TIME = 121,
	FATHOM_TYPE_RTC_ALARM = 123,
	FATHOM_TYPE_RTC_PLL = 124,
	FATHOM_TYPE_FSXATTR = 127,
	FATHOM_TYPE_FSXATTR_IN = 128,
	FATHOM_TYPE_FSTRIM = 129,
	FATHOM_TYPE_CLONE_RANGE = 130,
	FATHOM_TYPE_DEDUPE_ASKED = 131,
	FATHOM_TYPE_DEDUPE_DONE = 132,
	FATHOM_TYPE_FIEMAP_ASKED = 134,
	FATHOM_TYPE_FIEMAP_EXTENT = 137,
	FATHOM_TYPE_PARTITION = 139,
	FATHOM_TYPE_PARTITION_CHANGE = 142,
	FATHOM_TYPE_GEOMETRY = 143,
	FATHOM_TYPE_LOOP_INFO64 = 149,
	FATHOM_TYPE_LOOP_INFO64_PLAIN = 152,
	FATHOM_TYPE_LOOP_CONFIG = 155,
	FATHOM_TYPE_IFREQ_NAME = 157,
	FATHOM_TYPE_IFREQ_ADDR = 160,
	FATHOM_TYPE_IFREQ_DSTADDR = 161,
	FATHOM_TYPE_IFREQ_BROADADDR = 162,
	FATHOM_TYPE_IFREQ_NETMASK = 163,
	FATHOM_TYPE_IFREQ_HWADDR = 165,
	FATHOM_TYPE_IFREQ_FLAGS = 167,
	FATHOM_TYPE_IFREQ_METRIC = 168,
	FATHOM_TYPE_IFREQ_MTU = 169,
	FATHOM_TYPE_IFREQ_NEWNAME = 170,
	FATHOM_TYPE_IFREQ_SLAVE = 171,
	FATHOM_TYPE_IFREQ_INDEX = 172,
	FATHOM_TYPE_IFREQ_QLEN = 173,
	FATHOM_TYPE_IFMAP = 177,
	FATHOM_TYPE_IFREQ_MAP = 178,
	FATHOM_TYPE_IFREQ_PORT = 179,
	FATHOM_TYPE_UFFD_RANGE = 180,
	FATHOM_TYPE_UFFD_REGISTER = 182,
	FATHOM_TYPE_UFFD_REGISTERED = 184,
	FATHOM_TYPE_UFFD_COPY = 186,
	FATHOM_TYPE_UFFD_COPIED = 187,
	FATHOM_TYPE_UFFD_ZERO = 189,
	FATHOM_TYPE_UFFD_ZEROED = 190,
	FATHOM_TYPE_KVM_MEMORY = 192,
	FATHOM_TYPE_KVM_CPUID = 194,
	FATHOM_TYPE_KVM_SEGMENT = 195,
	FATHOM_TYPE_KVM_TABLE = 197,
	FATHOM_TYPE_KVM_SREGS = 199,
	FATHOM_TYPE_INPUT_ID = 200,
};

#endif
