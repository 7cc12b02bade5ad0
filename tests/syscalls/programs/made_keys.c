/* SPDX-License-Identifier: MIT */
/* Requests of keyctl(2), about a key in a keyring of this process. */
#include "made.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <sys/uio.h>

#define KEY(...) CALL(keyctl, __VA_ARGS__)

static void asked(long key)
{
	static const long rooms[] = { 0, 3, 100 };

	for (int i = 0; i < 3; i++) {
		KEY(KEYCTL_DESCRIBE, key, big, rooms[i]);
		KEY(KEYCTL_READ, KEY_SPEC_PROCESS_KEYRING, big, rooms[i]);
		KEY(KEYCTL_GET_SECURITY, key, big, rooms[i]);
	}
	KEY(KEYCTL_DESCRIBE, -1, big, 100);
	KEY(KEYCTL_DESCRIBE, key, 0, 0);
	KEY(KEYCTL_READ, key, big, 100);
}

static void changed(long key)
{
	struct iovec parts[] = { { "abc", 3 }, { "defg", 4 } };

	KEY(KEYCTL_UPDATE, key, "newer", 5);
	KEY(KEYCTL_CHOWN, key, -1, 5);
	KEY(KEYCTL_SETPERM, key, 0x3f3f0000);
	KEY(KEYCTL_SETPERM, key, 0x3f010203);
	KEY(KEYCTL_SETPERM, key, 0xc0c0c0c0);
	KEY(KEYCTL_LINK, key, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_SEARCH, KEY_SPEC_PROCESS_KEYRING, "user", "none", 0);
	KEY(KEYCTL_INSTANTIATE, key, "payload", 7, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_INSTANTIATE_IOV, key, parts, 2, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_NEGATE, key, 5, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_REJECT, key, 5, ENOKEY, KEY_SPEC_THREAD_KEYRING);
	for (int i = -1; i < 9; i++)
		KEY(KEYCTL_SET_REQKEY_KEYRING, i);
	KEY(KEYCTL_SET_TIMEOUT, key, 60);
	KEY(KEYCTL_ASSUME_AUTHORITY, key);
	KEY(KEYCTL_GET_PERSISTENT, -1, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_RESTRICT_KEYRING, KEY_SPEC_PROCESS_KEYRING, "asymmetric", "x");
	KEY(KEYCTL_RESTRICT_KEYRING, -9, 0, 0);
	KEY(KEYCTL_MOVE, key, KEY_SPEC_PROCESS_KEYRING, KEY_SPEC_SESSION_KEYRING, KEYCTL_MOVE_EXCL);
	KEY(KEYCTL_UNLINK, key, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_INVALIDATE, key);
	KEY(KEYCTL_REVOKE, key);
	KEY(77, 1, 2, 3, 4);
}

void keys(void)
{
	long key;

	KEY(KEYCTL_JOIN_SESSION_KEYRING, 0);
	key = CALL(add_key, "user", "made", "payload", 7, KEY_SPEC_PROCESS_KEYRING);
	KEY(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
	asked(key);
	changed(key);
}
