/* Objects that stand for Python functions: with `out` among the keywords, and with failed calls that are explained.

   Called by module.c, which registers them, and by core/op.c. The functions that they stand for are unchecked:
   they are called as any object is. All of this needs the GIL. */
#ifndef WRAPPERS_H
#define WRAPPERS_H
#include <Python.h>

extern PyTypeObject OutFunction_Type;

/* Return an OutFunction for (the function, what is called where `out` is given, its module's name, its name there). */
PyObject *out_function(PyObject *self, PyObject *args);

/* A function without `out` whose failed calls are explained; it binds as a method. */
extern PyTypeObject CheckedFunction_Type;
PyObject *checked_function(PyObject *self, PyObject *args);

/* core_explain(explain or None): what is called with (function, args, kwargs, exception) after a call has failed. */
PyObject *core_explain(PyObject *self, PyObject *explain);

/* core_older(function or None): what is called with (function, args, kwargs) after a TypeError, and may return a result. */
PyObject *core_older(PyObject *self, PyObject *function);
PyObject *older_call(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);
struct wrapper;
PyObject *call_explained(struct wrapper *self, PyObject *const *args, size_t flags, PyObject *names);
PyObject *failed_call(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Whether dispatch would leave a call alone: only classes handle calls now, and no argument's class can. */
int is_plain_call(PyObject *const *args, Py_ssize_t count, PyObject *names);

/* Whether the calls of a function that is no op are offered to core.dispatch, which must be there. */
int is_offered(PyObject *function);

/* Call core.dispatch, which must be there, in place of a call; NULL, or a new reference that may be core.unhandled. */
PyObject *call_dispatch(PyObject *op, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);
#endif
