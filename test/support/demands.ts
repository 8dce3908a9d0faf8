/** The routes that demand more of an application's token than `calls`, as the contract has them. */
const tenant = "/v1/tenants/:tenant_id"

export const demands: Readonly<Record<string, string>> = {
  "POST /v1/auth/oauth/code": "sign_in",

  "GET /v1/auth/oauth/userinfo": "profile",
  "POST /v1/auth/oauth/userinfo": "profile",
  "GET /v1/me": "profile",
  "GET /v1/me/memberships": "profile",

  [`POST ${tenant}/applications`]: "keys",
  [`GET ${tenant}/applications`]: "keys",
  [`GET ${tenant}/applications/:application_id`]: "keys",
  [`PATCH ${tenant}/applications/:application_id`]: "keys",
  [`DELETE ${tenant}/applications/:application_id`]: "keys",

  [`POST ${tenant}/billing/transfers`]: "transfers",
  [`GET ${tenant}/billing/transfers`]: "transfers",
  [`DELETE ${tenant}/billing/transfers/:transfer_id`]: "transfers",
  [`POST ${tenant}/billing/transfers/:transfer_id/resend`]: "transfers",
  "GET /v1/transfers": "transfers",
  "GET /v1/transfers/:transfer_id": "transfers",
  "POST /v1/transfers/:transfer_id/accept": "transfers",
  "POST /v1/transfers/:transfer_id/decline": "transfers",
  "POST /v1/transfer-invites/:token/attach": "transfers",

  [`GET ${tenant}/billing`]: "billing",
  [`PATCH ${tenant}/billing`]: "billing",
  [`GET ${tenant}/billing/amounts`]: "billing",
  [`GET ${tenant}/billing/ledger`]: "billing",
  [`GET ${tenant}/billing/auto-reload`]: "billing",
  [`PUT ${tenant}/billing/auto-reload`]: "billing",
  [`POST ${tenant}/billing/auto-reload/charge`]: "billing",
  [`POST ${tenant}/billing/checkout`]: "billing",
  [`GET ${tenant}/billing/payments`]: "billing",
  [`GET ${tenant}/billing/payment-methods`]: "billing",
  [`POST ${tenant}/billing/payment-methods/setup`]: "billing",
  "PUT /v1/me/billing-source": "billing",
  "POST /v1/vouchers/redeem": "billing",

  "POST /v1/tenants": "organization",
  [`GET ${tenant}/members`]: "organization",
  [`PATCH ${tenant}/members/:account_id`]: "organization",
  [`DELETE ${tenant}/members/:account_id`]: "organization",
  [`GET ${tenant}/invites`]: "organization",
  [`POST ${tenant}/invites`]: "organization",
  [`DELETE ${tenant}/invites/:invite_id`]: "organization",
  "POST /v1/tenant-invites/:token/accept": "organization",
  [`GET ${tenant}/plan`]: "organization",
  [`PUT ${tenant}/plan`]: "organization",
  "GET /v1/accounts/:account_id": "organization",
  "GET /v1/notifications": "organization",
  "POST /v1/notifications/read": "organization",
  "POST /v1/notifications/:id/read": "organization"
}
