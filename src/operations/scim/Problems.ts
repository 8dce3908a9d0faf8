/** Errors of the SCIM routes. The codes are the `scimType` values that RFC 7644, section 3.12 defines. */
import { Problem } from "../../kernel/Problem.ts"

export class ResourceNotFound extends Problem<ResourceNotFound>()("ResourceNotFound", {
  status: 404,
  error: "there is no such resource",
  code: "scim_not_found"
}) {}

/** Another user has this `userName`, another group has this `displayName`, or the account has a different `userName`. */
export class NotUnique extends Problem<NotUnique>()("NotUnique", {
  status: 409,
  error: "another resource already has this name, or this person is provisioned under a different name",
  code: "uniqueness"
}) {}

/** The text names the attribute and the violated constraint. */
export class InvalidValue extends Problem<InvalidValue>()("InvalidValue", {
  status: 400,
  error: "a value is missing or invalid",
  like: /./,
  code: "invalidValue"
}) {}

export class InvalidFilter extends Problem<InvalidFilter>()("InvalidFilter", {
  status: 400,
  error:
    'a filter must be attribute eq "value", with userName, externalId or id for users, and displayName, externalId or id for groups',
  code: "invalidFilter"
}) {}

export class InvalidPath extends Problem<InvalidPath>()("InvalidPath", {
  status: 400,
  error: "the path of an operation is unknown",
  like: /./,
  code: "invalidPath"
}) {}
