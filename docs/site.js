// The theme's search is a dialog without a name.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
