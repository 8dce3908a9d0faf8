/** The texts of the account view. */

export const accountTexts = {
  title: "Account",
  lead: "Your profile and passkeys on this service.",
  profile: "Profile",
  name: "Name",
  email: "Email",
  passkeys: "Passkeys",
  passkeysLead: "A passkey signs you in with your fingerprint, your face or your device's PIN.",
  unavailable: "Passkeys require a secure address with a domain name. This service does not have one.",
  unknownHere: "This browser does not support passkeys.",
  none: "No passkeys yet.",
  add: "Add a passkey",
  addName: "Name",
  addHelp: "For example, the device that stores the passkey.",
  added: (name: string) => `You can now sign in with the passkey ${name}.`,
  dismissed: "The browser did not create a passkey. Try again when you are ready.",
  known: "This device already has one of your passkeys.",
  created: "Created",
  used: "Last used",
  never: "never",
  remove: "Delete",
  removeTitle: (name: string) => `Delete the passkey ${name}?`,
  removeText: "You will no longer be able to sign in with it. Delete it from your device too. Open sessions continue.",
  removed: (name: string) => `The passkey ${name} was deleted.`
} as const
