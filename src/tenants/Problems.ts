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
