import { Problem } from "../kernel/Problem.ts"

export class AccountNotFound extends Problem<AccountNotFound>()("AccountNotFound", {
  status: 404,
  error: "account not found",
  code: "account_not_found"
}) {}

export class ApplicationNotFound extends Problem<ApplicationNotFound>()("ApplicationNotFound", {
  status: 404,
  error: "application not found",
  code: "application_not_found"
}) {}

/** Organisation routes: the caller is no active member of the path's tenant. */
export class NotAMember extends Problem<NotAMember>()("NotAMember", {
  status: 403,
  error: "you are not an active member of this tenant",
  code: "not_a_member"
}) {}
