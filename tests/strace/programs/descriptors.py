# SPDX-License-Identifier: MIT
"""Makes calls with descriptors of each kind, in the folder that it is given; prints what sockets were connected to."""
import os
import select
import socket
import sys

os.chdir(sys.argv[1])
for name in "socket\"'", "datagrams":
    if os.path.exists(name):
        os.unlink(name)

# TCP: bound, listening, connected, accepted, closed on both sides.
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
client = socket.socket()
client.connect(server.getsockname())
accepted, _ = server.accept()
accepted.send(b"hi")
client.recv(2)
# With two ports of five digits these are the 32 bytes that -s has: no port is cut.
print(*(f"{host}:{port}" for host, port in (client.getsockname(), client.getpeername())))
accepted.shutdown(socket.SHUT_WR)
client.recv(1)
client.close()
accepted.close()
server.close()

# UDP.
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(receiver.getsockname())
sender.send(b"x")
receiver.recv(1)
sender.close()

try:
    six = socket.socket(socket.AF_INET6)
    six.bind(("::1", 0))
    six.listen()
    other = socket.socket(socket.AF_INET6)
    other.connect(six.getsockname())
    other.send(b"x")
    lite = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)
    lite.bind(("127.0.0.1", 0))
    lite.getsockname()
except OSError:
    pass

one, two = socket.socketpair()
one.send(b"x")
two.recv(1)
packets, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
packets.send(b"x")
named = socket.socket(socket.AF_UNIX)
named.bind("socket\"'")
named.listen()
caller = socket.socket(socket.AF_UNIX)
caller.connect("socket\"'")
called, _ = named.accept()
caller.send(b"y")
called.recv(1)
abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
abstract.bind(b"\0fathom\n " + str(os.getpid()).encode())
abstract.close()

for protocol in 0, 15, 4:
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    netlink.bind((0, 0))
    netlink.getsockname()
    netlink.close()

for path in "/dev/null", "/dev/zero", "/dev/ptmx", "/etc/passwd", ".":
    fd = os.open(path, os.O_RDONLY)
    os.fstat(fd)
    os.close(fd)
process = os.pidfd_open(os.getpid())
os.close(process)
poll = select.epoll()
os.close(poll.fileno())
readable, writable = os.pipe()
os.write(writable, b"x")
fd = os.open("a>b\n<c\"\x01é", os.O_CREAT | os.O_RDWR)
os.unlink("a>b\n<c\"\x01é")
os.write(fd, b"x")
# A socket is replaced by a device, and the device by a file.
null = os.open("/dev/null", os.O_WRONLY)
os.dup2(null, one.fileno())
os.dup2(fd, null)
os.close(null)
os.close(fd)
