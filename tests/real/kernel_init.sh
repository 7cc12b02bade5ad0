#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# The first process of the kernel that tests/real/kernel.py boots: loads modules, asks fathom, and leaves
# what the kernel says of itself beside the answers, in the folder shared with whoever started it.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for module in virtio_pci 9pnet_virtio 9p ext4 nf_tables; do
    modprobe "$module"
done
mount -t 9p -o trans=virtio,version=9p2000.L share /share
cat /proc/kallsyms >/share/kallsyms
cat /proc/modules >/share/modules
# Labels of assemblers (.LC8) are no names.
awk 'NR % 97 == 0 && $2 !~ /[Aa]/ && $3 !~ /^[.$]/ { print "0x" $1 }' /proc/kallsyms >/share/asked
fathom addr --json --no-cache --debug-dir /share/debug kernel </share/asked >/share/answers 2>/share/complaints
fathom addr --json --no-cache kernel </share/asked >/share/names 2>/dev/null
# Names, what stands there, and code: as it is in memory, then as the file has it.
awk 'NR % 397 == 0 && $2 !~ /[Aa]/ && $3 !~ /^[.$]/ { print $3 }' /proc/kallsyms >/share/sought
fathom find --json --no-cache --debug-dir /share/debug kernel </share/sought >/share/found 2>/share/find_complaints
fathom find --json --no-cache --read str:400 kernel linux_banner 'jbd2:jbd2_journal_*' >/share/read 2>&1
cat /proc/version >/share/version
functions="vfs_read do_sys_openat2 kfree schedule ext4_file_open jbd2_journal_start"
fathom disasm --json --no-cache --debug-dir /share/debug kernel $functions >/share/code 2>/share/code_complaints
mount --bind /init /proc/kcore
fathom disasm --json --no-cache --debug-dir /share/debug kernel vfs_read >/share/code_of_file 2>/share/file_complaints
fathom find --read u64 kernel jiffies_64 >/share/unread 2>&1
touch /share/done
sync
poweroff -f
