/** The texts of the notification view. */

export const notificationsTexts = {
  title: "Notifications",
  lead: "News from all your tenants.",
  none: "Nothing yet",
  noneText: "Transfers, invitations, low balances, budgets and auto-reload problems appear here immediately.",
  markRead: "Mark as read",
  markAll: "Mark all as read",
  isUnread: "Unread",
  open: {
    transfer_received: "See the transfer",
    transfer_ended: "See the transfer",
    low_balance: "See the balance",
    auto_reload_failed: "See auto-reload",
    budget_reached: "",
    budget_raised: "",
    tenant_invite: ""
  }
} as const
