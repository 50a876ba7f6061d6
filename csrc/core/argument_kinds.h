/* The check of a call's arguments against PyTorch's signatures, for objects that stand for functions: each of them holds
   one `argument_check`, zeroed when it is made, calls `check_arguments` before its own code, and frees it at its end.

   The usual case costs some comparisons of types and runs no Python code; all others go to core/argument_kinds.c. Needs the GIL. */
#ifndef ARGUMENT_KINDS_H
#define ARGUMENT_KINDS_H
#include "core.h"

/* PyTorch's signatures of one function, as sets of kinds of arguments; made at its first call. */
struct signatures;

#define MOST_REMEMBERED 6

/* What a function that checks its arguments holds of them. */
struct argument_check {
  struct signatures *known; /* NULL where nothing is checked */
  PyObject *names;          /* the call that was let through last: its keywords, or NULL, */
  int is_made, remembered;  /* how many arguments it had, 0 where none is remembered, */
  struct {
    PyTypeObject *type; /* their types, which live for ever, */
    unsigned kind;      /* and their kinds */
  } last[MOST_REMEMBERED];
};

/* core_kinds(compiled, refusal, types): `compiled(function)` returns a function's signatures as a list of (masks, names,
   number of positional ones, whether the first list may be spread), or None where nothing is checked; `refusal(function,
   args, kwargs)` PyTorch's exception for arguments that fit no signature, or None; `types` is a tuple of (type, bit),
   tensors first. */
PyObject *core_kinds(PyObject *self, PyObject *args);

/* What `check_arguments` does unless the call is like the last one. */
int check_unlike_last(struct argument_check *check, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

unsigned kinds_of_list(PyObject *list); /* which lists a list or tuple may be taken for */

static inline int is_small(PyObject *number) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyUnstable_Long_IsCompact((PyLongObject *)number);
#else
  return (size_t)(Py_SIZE(number) + 1) <= 2;
#endif
}

static inline int is_like_last(const struct argument_check *check, PyObject *const *args, Py_ssize_t all, PyObject *names) {
  if (check->remembered != all || check->names != names) return 0;
  for (Py_ssize_t i = 0; i < all; i++) {
    PyTypeObject *type = Py_TYPE(args[i]);
    if (type != check->last[i].type) return 0;
    if (type == &PyLong_Type ? !is_small(args[i])
                             : (type == &PyTuple_Type || type == &PyList_Type) && kinds_of_list(args[i]) != check->last[i].kind)
      return 0;
  }
  return 1;
}

/* Raise PyTorch's exception where it refuses the kinds of a call's arguments: 0, or -1 with the exception. */
static inline int check_arguments(struct argument_check *check, PyObject *function, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names) {
  if (check->is_made && !check->known) return 0;
  if (!names && count == 1 && Py_TYPE(args[0]) == core.tensor) return 0;
  if (is_like_last(check, args, count + (names ? PyTuple_GET_SIZE(names) : 0), names)) return 0;
  return check_unlike_last(check, function, args, count, names);
}

void free_argument_check(struct argument_check *check);
#endif
