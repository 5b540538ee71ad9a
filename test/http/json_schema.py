"""Checks a value against a schema of docs/openapi.json: as much of JSON Schema as that file uses. A keyword that is
not known here is an error, so that none is passed over."""
import re

TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'null': type(None)}
KNOWN = {'$ref', 'type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'oneOf', 'pattern', 'minimum',
         'maximum', 'minLength', 'maxLength', 'description'}


def is_of(value, name):
    if name == 'integer':
        return isinstance(value, int) and not isinstance(value, bool)
    if name == 'number':
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check_object(root, schema, value, at):
    for name in schema.get('required', ()):
        assert name in value, f'{at}: {name} is missing in {value}'
    more = schema.get('additionalProperties', True)
    for name, member in value.items():
        known = schema.get('properties', {}).get(name, more)
        assert known is not False, f'{at}: {name} is not in the schema'
        if known is not True:
            check(root, known, member, f'{at}.{name}')


def fits(root, schema, value):
    try:
        check(root, schema, value, '$')
        return True
    except AssertionError:
        return False


def check(root, schema, value, at='$'):
    assert set(schema) <= KNOWN, f'{at}: {set(schema) - KNOWN}'
    if '$ref' in schema:
        target = root
        for part in schema['$ref'].split('/')[1:]:
            target = target[part]
        check(root, target, value, at)
        return
    if 'oneOf' in schema:
        assert sum(fits(root, one, value) for one in schema['oneOf']) == 1, f'{at}: {value} fits not exactly one'
    if 'enum' in schema:
        assert value in schema['enum'], f'{at}: {value} is none of {schema["enum"]}'
    types = schema.get('type', [])
    types = types if isinstance(types, list) else [types]
    assert not types or any(is_of(value, name) for name in types), f'{at}: {value!r} is no {types}'
    if isinstance(value, dict):
        check_object(root, schema, value, at)
    if isinstance(value, list) and 'items' in schema:
        for i, item in enumerate(value):
            check(root, schema['items'], item, f'{at}[{i}]')
    if isinstance(value, str):
        assert re.search(schema.get('pattern', ''), value), f'{at}: {value!r} is not like {schema.get("pattern")}'
        assert schema.get('minLength', 0) <= len(value) <= schema.get('maxLength', len(value)), f'{at}: {value!r}'
    if is_of(value, 'number'):
        assert schema.get('minimum', value) <= value <= schema.get('maximum', value), f'{at}: {value}'
