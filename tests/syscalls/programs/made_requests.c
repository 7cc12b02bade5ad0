/* SPDX-License-Identifier: MIT */
/*
 * Requests of ioctl(2). Few devices are there for a test: a filter of system calls has each request
 * of one descriptor succeed, without a kernel that does anything.
 */
#include "made.h"

#include <asm/kvm.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/if.h>
#include <linux/input.h>
#include <linux/kd.h>
#include <linux/kvm.h>
#include <linux/loop.h>
#include <linux/nbd.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/userfaultfd.h>
#include <linux/watchdog.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define DEVICE 1000

static const unsigned long wanted[] = {
	TCGETS,
	TCSETS,
	TCSETSF,
	TCGETA,
	TCSETA,
	TIOCGLCKTRMIOS,
	TIOCSLCKTRMIOS,
	TIOCGPGRP,
	TIOCSPGRP,
	TIOCGSID,
	TIOCOUTQ,
	TIOCSTI,
	TIOCGWINSZ,
	TIOCSWINSZ,
	TIOCMGET,
	TIOCMBIS,
	TIOCMSET,
	TIOCGSOFTCAR,
	TIOCSSOFTCAR,
	FIONREAD,
	TIOCCONS,
	TIOCPKT,
	FIONBIO,
	TIOCNOTTY,
	TIOCSETD,
	TIOCGETD,
	TCSBRKP,
	TIOCSBRK,
	TIOCVHANGUP,
	FIOCLEX,
	FIOASYNC,
	TIOCGPTN,
	TIOCSPTLCK,
	TIOCGDEV,
	TIOCGEXCL,
	TIOCSCTTY,
	TCXONC,
	TCFLSH,
	TIOCGPTLCK,
	KDSETMODE,
	KDGETMODE,
	KDGKBTYPE,
	SIOCGIFNAME,
	SIOCGIFFLAGS,
	SIOCSIFFLAGS,
	SIOCGIFADDR,
	SIOCSIFADDR,
	SIOCGIFDSTADDR,
	SIOCSIFDSTADDR,
	SIOCGIFBRDADDR,
	SIOCSIFBRDADDR,
	SIOCGIFNETMASK,
	SIOCSIFNETMASK,
	SIOCGIFMETRIC,
	SIOCSIFMETRIC,
	SIOCGIFMTU,
	SIOCSIFMTU,
	SIOCSIFNAME,
	SIOCGIFHWADDR,
	SIOCSIFHWADDR,
	SIOCADDMULTI,
	SIOCGIFSLAVE,
	SIOCGIFINDEX,
	SIOCGIFTXQLEN,
	SIOCSIFTXQLEN,
	SIOCGIFMAP,
	SIOCSIFMAP,
	SIOCBRADDBR,
	SIOCBRADDIF,
	SIOCGPGRP,
	SIOCATMARK,
	SIOCOUTQNSD,
	SIOCETHTOOL,
	SIOCADDRT,
	FICLONE,
	FICLONERANGE,
	FIFREEZE,
	FITRIM,
	FS_IOC_GETFLAGS,
	FS_IOC_SETFLAGS,
	FS_IOC_FSGETXATTR,
	FS_IOC_FSSETXATTR,
	FS_IOC_GETFSLABEL,
	FS_IOC_SETFSLABEL,
	FS_IOC_FIEMAP,
	BLKROSET,
	BLKROGET,
	BLKRRPART,
	BLKGETSIZE,
	BLKFLSBUF,
	BLKRASET,
	BLKRAGET,
	BLKSECTGET,
	BLKSSZGET,
	BLKDISCARD,
	BLKIOMIN,
	BLKALIGNOFF,
	BLKPBSZGET,
	BLKROTATIONAL,
	BLKBSZGET,
	BLKBSZSET,
	BLKGETSIZE64,
	BLKPG,
	HDIO_GETGEO,
	HDIO_GET_DMA,
	LOOP_SET_FD,
	LOOP_CLR_FD,
	LOOP_GET_STATUS64,
	LOOP_SET_DIRECT_IO,
	LOOP_CTL_ADD,
	LOOP_CTL_GET_FREE,
	NBD_SET_SOCK,
	NBD_DO_IT,
	RNDGETENTCNT,
	RNDADDTOENTCNT,
	RNDADDENTROPY,
	RNDCLEARPOOL,
	RTC_RD_TIME,
	RTC_SET_TIME,
	RTC_ALM_READ,
	RTC_WKALM_RD,
	RTC_WKALM_SET,
	RTC_PLL_GET,
	RTC_IRQP_READ,
	RTC_IRQP_SET,
	RTC_AIE_ON,
	RTC_VL_READ,
	WDIOC_GETTIMEOUT,
	WDIOC_SETTIMEOUT,
	WDIOC_KEEPALIVE,
	NS_GET_NSTYPE,
	NS_GET_OWNER_UID,
	PERF_EVENT_IOC_ENABLE,
	PERF_EVENT_IOC_REFRESH,
	PERF_EVENT_IOC_PERIOD,
	PERF_EVENT_IOC_SET_OUTPUT,
	PERF_EVENT_IOC_ID,
	PERF_EVENT_IOC_SET_BPF,
	PERF_EVENT_IOC_SET_FILTER,
	PERF_EVENT_IOC_PAUSE_OUTPUT,
	UFFDIO_REGISTER,
	UFFDIO_UNREGISTER,
	UFFDIO_WAKE,
	UFFDIO_COPY,
	UFFDIO_ZEROPAGE,
	UFFDIO_API,
	KVM_CHECK_EXTENSION,
	KVM_CREATE_VCPU,
	KVM_SET_USER_MEMORY_REGION,
	KVM_SET_CPUID2,
	KVM_GET_REGS,
	KVM_SET_REGS,
	KVM_GET_SREGS,
	KVM_SET_SREGS,
	KVM_GET_SUPPORTED_CPUID,
	KVM_RUN,
	EVIOCGVERSION,
	EVIOCGID,
	EVIOCGREP,
	EVIOCGRAB,
	_IOC(_IOC_READ | _IOC_WRITE, 0x97, 3, 5),
	_IOC(_IOC_NONE, 0xee, 0xee, 0),
	0xffffffff,
};

static void succeed(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DEVICE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 6, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What one request points to: rising numbers of 32 bits, or of 8, nothing but zeros, all bits. */
static void fill(int how)
{
	memset(big, how == 3 ? 0xff : 0, 4096);
	for (int i = 0; how < 2 && i < 4096; i++)
		big[i] = how ? i + 1 : i % 4 ? 0 : i / 4 + 1;
}

static void real_interfaces(void)
{
	static const unsigned long asked[] = { SIOCGIFFLAGS,   SIOCGIFADDR,   SIOCGIFBRDADDR,
					       SIOCGIFNETMASK, SIOCGIFMETRIC, SIOCGIFMTU,
					       SIOCGIFHWADDR,  SIOCGIFINDEX,  SIOCGIFTXQLEN,
					       SIOCGIFMAP,     SIOCGIFDSTADDR };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq one = { .ifr_ifindex = 1 };
	struct ifconf all = { .ifc_len = sizeof big, .ifc_buf = big };

	CALL(ioctl, fd, SIOCGIFNAME, &one);
	one.ifr_ifindex = 9999;
	CALL(ioctl, fd, SIOCGIFNAME, &one);
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		struct ifreq other = { .ifr_name = "nothing" };

		one = (struct ifreq){ .ifr_name = "lo" };
		CALL(ioctl, fd, asked[i], &one);
		CALL(ioctl, fd, asked[i], &other);
	}
	CALL(ioctl, fd, SIOCGIFCONF, &all);
	all.ifc_len = 39;
	CALL(ioctl, fd, SIOCGIFCONF, &all);
	all.ifc_buf = 0;
	CALL(ioctl, fd, SIOCGIFCONF, &all);
	CALL(ioctl, -1, SIOCGIFCONF, &all);
	CALL(ioctl, fd, SIOCGIFCONF, 0);
	CALL(ioctl, fd, SIOCINQ, big);
	CALL(ioctl, fd, SIOCOUTQ, big);
	close(fd);
}

static void real_files(void)
{
	int fd = a_file("asked");
	int ends[2];
	int n = 0;
	int space = open("/proc/self/ns/user", O_RDONLY);
	struct fiemap *map = (void *)big;
	struct file_dedupe_range *same = (void *)big;
	int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	write(fd, "text", 4);
	memset(big, 0, 4096);
	*map = (struct fiemap){ .fm_length = ~0ull,
				.fm_flags = FIEMAP_FLAG_SYNC,
				.fm_extent_count = 3 };
	CALL(ioctl, fd, FS_IOC_FIEMAP, map);
	CALL(ioctl, fd, FS_IOC_FIEMAP, BAD);
	memset(big, 0, 4096);
	*same = (struct file_dedupe_range){ .src_length = 4, .dest_count = 3 };
	same->info[1].dest_fd = fd;
	CALL(ioctl, DEVICE, FIDEDUPERANGE, same);
	CALL(ioctl, -1, FIDEDUPERANGE, same);
	CALL(ioctl, fd, FICLONE, fd);
	CALL(ioctl, fd, FIONBIO, &n);
	pipe(ends);
	write(ends[1], "12345", 5);
	CALL(ioctl, ends[0], FIONREAD, &n);
	CALL(ioctl, ends[0], FIOCLEX);
	CALL(ioctl, space, NS_GET_NSTYPE);
	CALL(ioctl, space, NS_GET_PARENT);
	CALL(ioctl, space, NS_GET_OWNER_UID, &n);
	CALL(ioctl, fd, NS_GET_USERNS);
	n = 0;
	CALL(ioctl, terminal, TIOCSPTLCK, &n);
	CALL(ioctl, terminal, TIOCGPTN, &n);
	CALL(ioctl, terminal, TCGETS, big);
	CALL(ioctl, terminal, TCSETSW, big);
	CALL(ioctl, terminal, TIOCGWINSZ, big);
	CALL(ioctl, terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY);
}

/* What has more than one struct, or a count behind which there is more. */
static void counted(void)
{
	struct loop_config loop = { .fd = 3, .block_size = 512 };
	struct blkpg_partition partition = { 512, 1024, 3, "name", "volume" };
	struct blkpg_ioctl_arg change = { BLKPG_ADD_PARTITION, 0, sizeof partition, &partition };

	strcpy((char *)loop.info.lo_file_name, "/a/file");
	loop.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
	loop.info.lo_encrypt_key_size = 5;
	for (int fd = -1; fd <= DEVICE; fd += DEVICE + 1) {
		CALL(ioctl, fd, LOOP_CONFIGURE, &loop);
		CALL(ioctl, fd, LOOP_SET_STATUS64, &loop.info);
		CALL(ioctl, fd, BLKPG, &change);
		*(uint32_t *)big = 2;
		CALL(ioctl, fd, PERF_EVENT_IOC_QUERY_BPF, big);
		CALL(ioctl, fd, KVM_SET_CPUID2, big);
		CALL(ioctl, fd, KVM_GET_EMULATED_CPUID, big);
	}
}

void requests(void)
{
	succeed();
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		for (int how = 0; how < 4; how++) {
			fill(how);
			CALL(ioctl, DEVICE, wanted[i], big);
		}
		fill(0);
		CALL(ioctl, -1, wanted[i], big);
		CALL(ioctl, DEVICE, wanted[i], 0);
		CALL(ioctl, -1, wanted[i], 0);
		CALL(ioctl, DEVICE, wanted[i], BAD);
	}
	real_interfaces();
	real_files();
	counted();
}
