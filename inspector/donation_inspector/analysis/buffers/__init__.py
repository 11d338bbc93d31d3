"""Who holds which buffer at each point of a program: what the check and the passes that place values share.

Every argument has a buffer, and every operation gives its results buffers of their own, except:

- A view (reshape, barrier, cast, slice of a tensor, element of a tuple) is in its operand's buffer, an `if` or `case`
  gives what its branches give, a call what its callee does with the caller's buffers, a choice either operand.
- `materialize_in_destination` writes its source over what the destination's buffer holds, unless it is there already.
  Right behind the operation that makes a value which nothing else reads, it says that this operation writes there at
  once, so that it may read from the same buffer only what it reads before it writes that place.
- What a loop carries, an update, a scatter, an insertion and linalg's `outs` are worked on in place where the result,
  or a view of it, is materialized into the buffer that the destination is in; else on a copy.
- A custom call with `output_operand_aliases` works in place where nothing needs the operand later, else on a copy.
- An operation that is not known, and a call of a function without a body, may give any operand back and writes none.

A buffer has a version, which every write changes; a value is a buffer and the version of it that it needs, or several
of which it is in one. What may be written counts as written: so nothing is missed, and something sound may be rejected.
"""
