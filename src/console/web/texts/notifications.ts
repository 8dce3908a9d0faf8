/** The texts of the notifications view. */

export const notificationsTexts = {
  title: "Notifications",
  lead: "Updates from all your tenants.",
  none: "No notifications yet",
  noneText: "Transfers, invitations, and alerts about balances, budgets and auto-reload appear here.",
  markRead: "Mark as read",
  markAll: "Mark all as read",
  isUnread: "Unread",
  open: {
    transfer_received: "View transfer",
    transfer_ended: "View transfer",
    low_balance: "View balance",
    auto_reload_failed: "View auto-reload",
    budget_reached: "",
    budget_raised: "",
    tenant_invite: ""
  }
} as const
