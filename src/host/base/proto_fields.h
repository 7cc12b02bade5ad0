/* SPDX-License-Identifier: MIT */
/*
 * Fields of protocol buffers (https://protobuf.dev/programming-guides/encoding/), which nanopb
 * encodes. For files that are in builds with nanopb only.
 *
 * The length of a message stands before it: each is encoded twice, the first time only to count its
 * bytes. So messages are nested a few levels deep only.
 */
#ifndef FATHOM_BASE_PROTO_FIELDS_H
#define FATHOM_BASE_PROTO_FIELDS_H

/* The names that tools/nanopb gives them. */
#define pb_encode_string fathom_pb_encode_string
#define pb_encode_tag    fathom_pb_encode_tag
#define pb_encode_varint fathom_pb_encode_varint
#include FATHOM_NANOPB_HEADER
#include <string.h>

/* Encodes the fields of @message. */
typedef bool fathom_proto_body(pb_ostream_t *to, const void *message);

static inline bool fathom_proto_number(pb_ostream_t *to, uint32_t field, uint64_t value)
{
	return pb_encode_tag(to, PB_WT_VARINT, field) && pb_encode_varint(to, value);
}

static inline bool fathom_proto_bytes(pb_ostream_t *to, uint32_t field, const void *bytes, size_t n)
{
	return pb_encode_tag(to, PB_WT_STRING, field) && pb_encode_string(to, bytes, n);
}

static inline bool fathom_proto_string(pb_ostream_t *to, uint32_t field, const char *s)
{
	return fathom_proto_bytes(to, field, s, strlen(s));
}

/* Appends @message, which @body encodes, as a field. */
static inline bool fathom_proto_message(pb_ostream_t *to, uint32_t field, fathom_proto_body *body,
					const void *message)
{
	pb_ostream_t size = PB_OSTREAM_SIZING;

	return body(&size, message) && pb_encode_tag(to, PB_WT_STRING, field) &&
	       pb_encode_varint(to, size.bytes_written) && body(to, message);
}

/* Returns how a negative int32 is encoded: as an int64. */
static inline uint64_t fathom_proto_signed(int32_t value)
{
	return (uint64_t)(int64_t)value;
}

#endif
